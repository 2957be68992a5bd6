"""Tensor arrays: values of many elements. Users enter by `tensor_array`, loops by `elements`."""
