// goextender is the smallest scheduler extender that serves all four verbs in the ordinary way:
// net/http, encoding/json into the published types, client-go for the binding. It decides
// nothing: every node passes (or, with -one-name, one of them by chance), scores are arbitrary, and
// the binding carries one annotation.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	extender "k8s.io/kube-scheduler/extender/v1"
)

func decoded[T any](answer func(context.Context, *T) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var args T
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer(r.Context(), &args)); err != nil {
			log.Print(err)
		}
	}
}

func filter(_ context.Context, args *extender.ExtenderArgs) any {
	return extender.ExtenderFilterResult{NodeNames: args.NodeNames}
}

// oneName leaves one of the nodes, so that kube-scheduler neither scores nor asks for scores.
func oneName(_ context.Context, args *extender.ExtenderArgs) any {
	names := *args.NodeNames
	if len(names) > 1 {
		sum := fnv.New32a()
		sum.Write([]byte(args.Pod.UID))
		at := int(sum.Sum32() % uint32(len(names)))
		names = names[at : at+1]
	}
	return extender.ExtenderFilterResult{NodeNames: &names}
}

func prioritize(_ context.Context, args *extender.ExtenderArgs) any {
	scores := make(extender.HostPriorityList, 0, len(*args.NodeNames))
	for _, name := range *args.NodeNames {
		sum := fnv.New32a()
		sum.Write([]byte(name))
		scores = append(scores, extender.HostPriority{Host: name, Score: int64(sum.Sum32() % 101)})
	}
	return scores
}

func preempt(_ context.Context, args *extender.ExtenderPreemptionArgs) any {
	return extender.ExtenderPreemptionResult{NodeNameToMetaVictims: args.NodeNameToMetaVictims}
}

func binder(client kubernetes.Interface) func(context.Context, *extender.ExtenderBindingArgs) any {
	return func(ctx context.Context, args *extender.ExtenderBindingArgs) any {
		note, err := json.Marshal(map[string]string{"node": args.Node})
		if err == nil {
			err = client.CoreV1().Pods(args.PodNamespace).Bind(ctx, &v1.Binding{
				ObjectMeta: metav1.ObjectMeta{
					Name:        args.PodName,
					Namespace:   args.PodNamespace,
					UID:         args.PodUID,
					Annotations: map[string]string{"example.com/placement": string(note)},
				},
				Target: v1.ObjectReference{Kind: "Node", Name: args.Node},
			}, metav1.CreateOptions{})
		}
		if err != nil {
			return extender.ExtenderBindingResult{Error: err.Error()}
		}
		return extender.ExtenderBindingResult{}
	}
}

func main() {
	address := flag.String("listen", "127.0.0.1:0", "address to listen on")
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	one := flag.Bool("one-name", false, "leave one node in filter")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	answered := filter
	if *one {
		answered = oneName
	}
	http.HandleFunc("/filter", decoded(answered))
	http.HandleFunc("/prioritize", decoded(prioritize))
	http.HandleFunc("/preempt", decoded(preempt))
	http.HandleFunc("/bind", decoded(binder(client)))
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { log.Fatal(http.Serve(listener, nil)) }()
	<-stop
}
