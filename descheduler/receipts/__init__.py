"""What moves were expected to bring and what they have brought; profiles whose moves do not pay.

Pure: `receipt`, `expectation`, `settlement`, `breaker`. The rest reads and writes objects.
"""
