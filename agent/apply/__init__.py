"""Turn edits into writes, safely, with a journal."""
