"""HTTP verbs to pipeline calls and back."""
