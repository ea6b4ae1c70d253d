"""Daily sums of what colocation gives, for `koord report`."""
