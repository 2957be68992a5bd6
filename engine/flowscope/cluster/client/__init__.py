"""What runs where the user is. `fs.cluster.connect` enters by `membership`."""
