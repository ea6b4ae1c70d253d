// goclient calls extenders through kube-scheduler's own client code and prints how long each call
// took from the scheduler's side, in microseconds: marshalling, transport, answer, decoding.
//
// Extenders are called in turn, block by block, so that both see the same machine.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extender "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type nodes struct {
	list   []fwk.NodeInfo
	byName map[string]fwk.NodeInfo
}

func (n *nodes) List() ([]fwk.NodeInfo, error)                     { return n.list, nil }
func (n *nodes) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return nil, nil }
func (n *nodes) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return nil, nil
}
func (n *nodes) Get(name string) (fwk.NodeInfo, error) {
	if found, ok := n.byName[name]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("node %s is not known", name)
}

func lines(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	var found []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		found = append(found, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
	return found
}

func read(nodesFile, podsFile string) (*nodes, []*v1.Pod) {
	known := &nodes{byName: map[string]fwk.NodeInfo{}}
	for number, name := range lines(nodesFile) {
		victim := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("victim-%d", number), UID: types.UID(fmt.Sprintf("victim-%d", number)),
		}}
		info := framework.NewNodeInfo(victim)
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		known.list = append(known.list, info)
		known.byName[name] = info
	}
	var pods []*v1.Pod
	for _, line := range lines(podsFile) {
		pod := &v1.Pod{}
		if err := json.Unmarshal([]byte(line), pod); err != nil {
			log.Fatal(err)
		}
		pods = append(pods, pod)
	}
	return known, pods
}

type call struct {
	verb   string
	pod    *v1.Pod
	sample []fwk.NodeInfo
}

func (c call) on(target fwk.Extender, known *nodes) error {
	switch c.verb {
	case "filter":
		_, _, _, err := target.Filter(c.pod, c.sample)
		return err
	case "prioritize":
		_, _, err := target.Prioritize(c.pod, c.sample)
		return err
	case "preempt":
		victims := map[string]*extender.Victims{}
		for _, info := range c.sample {
			pod := info.GetPods()[0].GetPod()
			victims[info.Node().Name] = &extender.Victims{Pods: []*v1.Pod{pod}}
		}
		_, err := target.ProcessPreemption(c.pod, victims, known)
		return err
	default:
		return target.Bind(&v1.Binding{
			ObjectMeta: metav1.ObjectMeta{
				Name: c.pod.Name, Namespace: c.pod.Namespace, UID: c.pod.UID,
			},
			Target: v1.ObjectReference{Kind: "Node", Name: c.sample[0].Node().Name},
		})
	}
}

func main() {
	nodesFile := flag.String("nodes", "", "file with one node name per line")
	podsFile := flag.String("pods", "", "file with one pod per line, as JSON")
	first := flag.Int("first", 0, "the first pod of the file to use")
	verb := flag.String("verb", "filter", "filter, prioritize, preempt or bind")
	names := flag.Int("names", 500, "nodes per call")
	calls := flag.Int("calls", 200, "calls per block")
	blocks := flag.Int("blocks", 5, "blocks per extender")
	warm := flag.Int("warm", 20, "calls of each block that are not counted")
	flag.Parse()
	known, pods := read(*nodesFile, *podsFile)
	targets := make([]fwk.Extender, flag.NArg())
	for i, url := range flag.Args() {
		var err error
		targets[i], err = scheduler.NewHTTPExtender(&config.Extender{
			URLPrefix: strings.TrimRight(url, "/"), FilterVerb: "filter",
			PrioritizeVerb: "prioritize", PreemptVerb: "preempt", BindVerb: "bind", Weight: 1,
			HTTPTimeout: metav1.Duration{Duration: 30 * time.Second}, NodeCacheCapable: true,
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	taken := make([][][]float64, len(targets))
	at := *first
	for block := range *blocks {
		random := rand.New(rand.NewSource(int64(block)))
		for index, target := range targets {
			times := make([]float64, 0, *calls)
			for turn := range *calls {
				if *verb == "filter" || *verb == "prioritize" {
					random.Shuffle(len(known.list), func(i, j int) {
						known.list[i], known.list[j] = known.list[j], known.list[i]
					})
				}
				start := (at * *names) % max(1, len(known.list)-*names+1)
				one := call{*verb, pods[at%len(pods)], known.list[start : start+*names]}
				at++
				started := time.Now()
				err := one.on(target, known)
				elapsed := time.Since(started)
				if err != nil {
					log.Fatalf("%s at %s: %v", *verb, flag.Arg(index), err)
				}
				if turn >= *warm {
					times = append(times, float64(elapsed.Nanoseconds())/1e3)
				}
			}
			taken[index] = append(taken[index], times)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(taken); err != nil {
		log.Fatal(err)
	}
}
