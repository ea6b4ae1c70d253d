"""FragmentationAware: moves pods so that what is left of a node is of use."""
