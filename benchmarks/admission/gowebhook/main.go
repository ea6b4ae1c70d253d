// gowebhook is the smallest admission webhook that does what any of them does in Go: net/http over
// TLS, encoding/json into the published types. It decides nothing: every pod is allowed, and the
// mutating path adds one annotation.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"

	admission "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"
)

var patch = []byte(`[{"op":"add","path":"/metadata/annotations/bench.example.com~1seen","value":"yes"}]`)

func reviewed(patched bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admission.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		var pod v1.Pod
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if patched {
			kind := admission.PatchTypeJSONPatch
			answer.Patch, answer.PatchType = patch, &kind
		}
		w.Header().Set("Content-Type", "application/json")
		body := admission.AdmissionReview{TypeMeta: review.TypeMeta, Response: &answer}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			log.Print(err)
		}
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	certificate := flag.String("certificate", "", "certificate file")
	key := flag.String("key", "", "key file")
	flag.Parse()
	http.HandleFunc("/mutate-pod", reviewed(true))
	http.HandleFunc("/validate-pod", reviewed(false))
	log.Fatal(http.ListenAndServeTLS(*listen, *certificate, *key, nil))
}
