"""LoadAware: filters and scores nodes by measured and expected usage."""
