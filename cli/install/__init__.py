"""What is rendered, applied and removed: CRDs, scheduler configurations, dashboards, manifests."""
