"""Who asks the console, and what they may read: TokenReview and SubjectAccessReview."""
