"""How processes of a cluster reach each other. Clients and workers enter by `endpoint`.

`endpoint` is what others use of it. `connections` and `links` carry bytes, `frames`, `messages` and
`values` say what they mean, and `channel` and `boxes` are the rendezvous of a step.
"""
