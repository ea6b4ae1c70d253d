"""RemoveDuplicates: moves pods of one owner that share a node although others would take them."""
