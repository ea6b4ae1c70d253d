"""What admission decides on: snapshots of watched objects, and look-ups of what no watch keeps."""
