// A cAdvisor as kubelets embed it: raw control groups, the kubelet's set of figures, served as Prometheus text.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/cadvisor/cache/memory"
	"github.com/google/cadvisor/container"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/manager"
	"github.com/google/cadvisor/metrics"
	"github.com/google/cadvisor/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

func main() {
	prefix := flag.String("prefix", "/", "the groups that are looked at, by the beginning of their path")
	every := flag.Duration("every", 10*time.Second, "time between two looks")
	flag.Parse()
	figures := container.MetricSet{
		container.CpuUsageMetrics:     struct{}{},
		container.MemoryUsageMetrics:  struct{}{},
		container.CpuLoadMetrics:      struct{}{},
		container.DiskIOMetrics:       struct{}{},
		container.NetworkUsageMetrics: struct{}{},
		container.ProcessMetrics:      struct{}{},
		container.OOMMetrics:          struct{}{},
	}
	dynamic := true
	pace := manager.HousekeepingConfig{Interval: every, AllowDynamic: &dynamic}
	looks, err := manager.New(memory.New(2*time.Minute, nil), sysfs.NewRealSysFs(), pace, figures,
		http.DefaultClient, []string{*prefix}, nil, "", 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := looks.Start(); err != nil {
		log.Fatal(err)
	}
	known := prometheus.NewRegistry()
	known.MustRegister(metrics.NewPrometheusCollector(looks, nil, figures, clock.RealClock{},
		v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true}))
	http.Handle("/metrics", promhttp.HandlerFor(known, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
