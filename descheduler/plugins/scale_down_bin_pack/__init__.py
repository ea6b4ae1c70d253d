"""ScaleDownBinPack: ranks or moves pods so that a smaller cluster needs fewer nodes."""
