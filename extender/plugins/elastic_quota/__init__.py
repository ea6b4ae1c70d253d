"""ElasticQuota: pods of a quota may use in all what the quota may use at that moment."""
