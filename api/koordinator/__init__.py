"""The custom resources, annotations and configuration of Koordinator, one module per group."""
