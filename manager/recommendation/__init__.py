"""What workloads should request, judged by what their containers used."""
