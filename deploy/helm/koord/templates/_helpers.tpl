{{/* Labels that never change: they select. Call with (list . "component"). */}}
{{- define "koord.selector" -}}
app.kubernetes.io/name: koord
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of every object. Call with (list . "component"). */}}
{{- define "koord.labels" -}}
{{ include "koord.selector" . }}
app.kubernetes.io/part-of: koord
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end }}

{{/* Labels of an object that belongs to no single process. */}}
{{- define "koord.shared-labels" -}}
app.kubernetes.io/name: koord
app.kubernetes.io/part-of: koord
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Full names of the accounts that may write what schedulers write on pods, as JSON. */}}
{{- define "koord.pod-writers" -}}
{{- $accounts := list -}}
{{- range list "koord-scheduler" "koord-extender" -}}
{{- $accounts = append $accounts (printf "system:serviceaccount:%s:%s" $.Release.Namespace .) -}}
{{- end -}}
{{- concat $accounts (.Values.protection.accounts | default list) | uniq | toJson -}}
{{- end }}

{{- define "koord.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is required: name the registry and the image, for example --set image.repository=registry.example.com/koord" $image.repository -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "koord.scheduler-image" -}}
{{- $image := .Values.scheduler.image -}}
{{- /* Clouds append words to the version that no image carries. */ -}}
{{- $version := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{ $image.repository }}:{{ $image.tag | default $version }}
{{- end }}

{{- define "koord.pull-secrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Where a pod may run. Call with the values of its process. */}}
{{- define "koord.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where the pod of a hook may run: where its own values say, else where the manager may. Rules about other pods would keep
     it from nodes on which managers run. Call with (list . values). */}}
{{- define "koord.hook-placement" -}}
{{- $manager := (index . 0).Values.manager -}}
{{- $own := index . 1 -}}
{{- $nodes := pick ($manager.affinity | default dict) "nodeAffinity" -}}
{{- $tolerations := $own.tolerations | default $manager.tolerations -}}
{{- $selector := $own.nodeSelector | default $manager.nodeSelector -}}
{{- include "koord.placement" (dict "nodeSelector" $selector "affinity" ($own.affinity | default $nodes) "tolerations" $tolerations) -}}
{{- end }}

{{/* Replicas prefer different nodes. Call with (list . "component"). */}}
{{- define "koord.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "koord.selector" . | nindent 8 }}
{{- end }}

{{- define "koord.pod-security" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "koord.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Probes of our own processes: alive answers at once, ready when every list is complete. */}}
{{- define "koord.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end }}

{{/* The processes that are installed, as JSON. */}}
{{- define "koord.components" -}}
{{- $components := list "webhook" "manager" -}}
{{- if .Values.descheduler.enabled -}}
{{- $components = append $components "descheduler" -}}
{{- end -}}
{{- if eq .Values.scheduler.mode "beside" -}}
{{- $components = append $components "scheduler" -}}
{{- end -}}
{{- if .Values.agent.enabled -}}
{{- $components = append $components "agent" -}}
{{- end -}}
{{- if .Values.deviceDaemon.enabled -}}
{{- $components = append $components "device-daemon" -}}
{{- end -}}
{{- $components | toJson -}}
{{- end }}

{{/* Settings of a process: what the chart says, then what the values say, over the process' own defaults. Values are
     copied, since merging writes into maps, and all processes share these. Call with (list . base values). */}}
{{- define "koord.settings" -}}
{{- $log := dict "log" (deepCopy ((index . 0).Values.log | default dict)) -}}
{{- toYaml (mustMergeOverwrite $log (index . 1) (deepCopy (index . 2 | default dict))) -}}
{{- end }}

{{- define "koord.extender-settings" -}}
{{- $base := dict "namespace" .Release.Namespace "health" (dict "host" "0.0.0.0") -}}
{{/* Without policies a tenant may claim on its pod what another one holds: nobody is evicted because of that. */}}
{{- if not (include "koord.has-policies" .) -}}
{{- $_ := set $base "overlap" (dict "evict" false) -}}
{{- end -}}
{{- if eq .Values.scheduler.mode "beside" -}}
{{- /* The very file that kube-scheduler reads; scores differ between its versions and feature gates. */ -}}
{{- $version := regexFind "^v?[0-9]+\\.[0-9]+(\\.[0-9]+)?" (.Values.scheduler.image.tag | default .Capabilities.KubeVersion.Version) -}}
{{- $_ := set $base "scheduler" (dict "configFile" "/etc/koord-scheduler/scheduler.yaml" "version" $version "arguments" (.Values.scheduler.extraArgs | default list)) -}}
{{- end -}}
{{- include "koord.settings" (list . $base .Values.extender.settings) -}}
{{- end }}

{{- define "koord.webhook-settings" -}}
{{- $registration := .Values.webhook.registration -}}
{{- $name := printf "koord-webhook.%s.svc" .Release.Namespace -}}
{{- $certificates := dict "names" (list $name) -}}
{{- $server := dict -}}
{{- $asked := dict "failurePolicy" $registration.failurePolicy "timeoutSeconds" $registration.timeoutSeconds "excludedNamespaces" ($registration.excludedNamespaces | default list) -}}
{{- $base := dict "namespace" .Release.Namespace -}}
{{- if eq $registration.by "chart" -}}
{{- $_ := set $certificates "authorityFile" "/etc/koord-tls/ca.crt" -}}
{{- $_ := set $asked "enabled" false -}}
{{- $_ := set $server "tls" (dict "certFile" "/etc/koord-tls/tls.crt" "keyFile" "/etc/koord-tls/tls.key") -}}
{{- end -}}
{{- $blocks := include "koord.api-server-blocks" . | fromJsonArray -}}
{{- with $blocks -}}
{{- $_ := set $server "callerBlocks" . -}}
{{- end -}}
{{- if .Values.webhook.refuseOthers -}}
{{- if not $blocks -}}
{{- fail "webhook.refuseOthers needs networkPolicy.apiServerBlocks: without them the API servers would be refused as well" -}}
{{- end -}}
{{- $_ := set $server "refuseOthers" true -}}
{{- end -}}
{{- if $server -}}
{{- $_ := set $base "server" $server -}}
{{- end -}}
{{- $writers := append (include "koord.pod-writers" . | fromJsonArray) (printf "system:serviceaccount:%s:koord-manager" .Release.Namespace) -}}
{{- $_ := set $base "protection" (dict "accounts" $writers "groups" (.Values.protection.groups | default list)) -}}
{{- if not (include "koord.has-policies" .) -}}
{{- $_ := set $base "featureGates" (dict "ProtectedPodFields" true) -}}
{{- end -}}
{{- $_ := set $base "quota" (dict "admission" .Values.quota.admission) -}}
{{- $_ := set $base "gang" (dict "admission" .Values.gang.admission) -}}
{{- $_ := set $base "certificates" $certificates -}}
{{- $_ := set $base "registration" $asked -}}
{{- include "koord.settings" (list . $base .Values.webhook.settings) -}}
{{- end }}

{{/* Feature gates of elastic quota, for all processes alike: what the quota says, else what the webhook is given. */}}
{{- define "koord.quota-gates" -}}
{{- $found := deepCopy (.Values.quota.featureGates | default dict) -}}
{{- range $name := list "MultiQuotaTree" "ElasticQuotaGuaranteeUsage" "DisableDefaultQuota" -}}
{{- $given := dig "featureGates" $name "unset" ($.Values.webhook.settings | default dict) -}}
{{- if and (ne (toString $given) "unset") (not (hasKey $found $name)) -}}
{{- $_ := set $found $name $given -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{/* Arguments of plug-ins, with the feature gates among those of ElasticQuota. */}}
{{- define "koord.plugin-config" -}}
{{- $gates := include "koord.quota-gates" . | fromYaml -}}
{{- $found := list -}}
{{- $named := false -}}
{{- range $one := deepCopy (.Values.scheduler.config.pluginConfig | default list) -}}
{{- if eq $one.name "ElasticQuota" -}}
{{- $named = true -}}
{{- $written := dig "args" "featureGates" dict $one -}}
{{- $all := mustMergeOverwrite (deepCopy $gates) $written -}}
{{- if $all -}}
{{- $_ := set $one "args" (merge (dict "featureGates" $all) ($one.args | default dict)) -}}
{{- end -}}
{{- end -}}
{{- $found = append $found $one -}}
{{- end -}}
{{- if and $gates (not $named) -}}
{{- $found = append $found (dict "name" "ElasticQuota" "args" (dict "featureGates" $gates)) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{- define "koord.webhook-tls-secret" -}}
{{- .Values.webhook.registration.tlsSecret | default "koord-webhook-tls" -}}
{{- end }}

{{- define "koord.manager-settings" -}}
{{- $base := dict "configNamespace" .Release.Namespace "leaderElection" (dict "namespace" .Release.Namespace) -}}
{{- if ne .Values.quota.admission "gate" -}}
{{- $_ := set $base "quota" (dict "gates" (dict "mode" "off")) -}}
{{- end -}}
{{- if or (eq .Values.webhook.registration.by "chart") .Values.webhook.refuseOthers -}}
{{- $_ := set $base "admission" (dict "withdraw" false) -}}
{{- end -}}
{{- with .Values.manager.console -}}
{{- if .enabled -}}
{{- $console := dict "enabled" true "server" (dict "host" (ternary "0.0.0.0" "127.0.0.1" .service) "port" 8082) -}}
{{- if .viewer -}}
{{- $_ := set $console "viewer" (printf "system:serviceaccount:%s:koord-console-viewer" $.Release.Namespace) -}}
{{- end -}}
{{- $_ := set $base "console" $console -}}
{{- end -}}
{{- end -}}
{{- include "koord.settings" (list . $base .Values.manager.settings) -}}
{{- end }}

{{- define "koord.descheduler-settings" -}}
{{- $base := dict "configuration" "/etc/koord-descheduler/koord-descheduler-config" "configNamespace" .Release.Namespace -}}
{{- $_ := set $base "health" (dict "port" 8080) -}}
{{- include "koord.settings" (list . $base .Values.descheduler.settings) -}}
{{- end }}

{{/* The configuration of the descheduler, with what follows from the release: its namespace, and who calls the extender. */}}
{{- define "koord.descheduler-configuration" -}}
{{- $scheduler := .Values.scheduler -}}
{{- $callers := list $scheduler.schedulerName -}}
{{- if eq $scheduler.mode "in-place" -}}
{{- $callers = list "default-scheduler" $scheduler.schedulerName -}}
{{- end -}}
{{- $config := deepCopy .Values.descheduler.config -}}
{{- $lease := merge (deepCopy ($config.leaderElection | default dict)) (dict "resourceNamespace" .Release.Namespace) -}}
{{- $profiles := list -}}
{{- range $profile := $config.profiles | default list -}}
{{- $plugins := list -}}
{{- range $one := $profile.pluginConfig | default list -}}
{{- if eq $one.name "MigrationController" -}}
{{- $kept := dict "exclude" (list "kube-system" $.Release.Namespace) -}}
{{- $given := $one.args | default dict -}}
{{- $_ := set $one "args" (merge (deepCopy $given) (dict "schedulerNames" $callers) (hasKey $given "namespaces" | ternary dict (dict "namespaces" $kept))) -}}
{{- end -}}
{{- $plugins = append $plugins $one -}}
{{- end -}}
{{- $profiles = append $profiles (merge (dict "pluginConfig" $plugins) $profile) -}}
{{- end -}}
{{- $head := dict "apiVersion" "descheduler/v1alpha2" "kind" "DeschedulerConfiguration" "leaderElection" $lease "profiles" $profiles -}}
{{- toYaml (mustMergeOverwrite $config $head) -}}
{{- end }}

{{/* Address blocks from which the API servers call the webhook, as JSON: those that are named, else those discovered. */}}
{{- define "koord.api-server-blocks" -}}
{{- $blocks := .Values.networkPolicy.apiServerBlocks | default list -}}
{{- if and (not $blocks) .Values.networkPolicy.discoverApiServers -}}
{{- $slices := (lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "").items | default list -}}
{{- range $slice := $slices -}}
{{- if eq (index ($slice.metadata.labels | default dict) "kubernetes.io/service-name" | default "") "kubernetes" -}}
{{- range $endpoint := $slice.endpoints -}}
{{- range $address := $endpoint.addresses -}}
{{- $blocks = append $blocks (printf "%s/%s" $address (eq $slice.addressType "IPv6" | ternary "128" "32")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $blocks | uniq | toJson -}}
{{- end }}

{{/* What agents may ask of kubelets: pods, none or proxy. */}}
{{- define "koord.kubelet-access" -}}
{{- $access := .Values.agent.kubeletAccess -}}
{{- if eq $access "auto" -}}
{{- $access = semverCompare ">=1.33.0-0" .Capabilities.KubeVersion.Version | ternary "pods" "none" -}}
{{- end -}}
{{- $access -}}
{{- end }}

{{- define "koord.agent-settings" -}}
{{- $host := dict "cgroup" "/host/cgroup" "state" "/var/run/koord-agent" "lasting" "/var/lib/koord-agent" -}}
{{- $kubelet := dict "tokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token" -}}
{{- if eq (include "koord.kubelet-access" .) "none" -}}
{{- $_ := set $kubelet "podsFrom" "apiServer" -}}
{{- end -}}
{{- if not .Values.agent.podsFallBack -}}
{{- $_ := set $kubelet "fallBack" false -}}
{{- end -}}
{{- if .Values.agent.kubeletState -}}
{{- $_ := set $kubelet "folder" "/host/kubelet" -}}
{{- end -}}
{{- $base := dict "namespace" .Release.Namespace "host" $host "kubelet" $kubelet -}}
{{- $profile := .Values.agent.profile -}}
{{- if eq $profile "observe" -}}
{{- $_ := set $base "mode" "observe" -}}
{{- else if eq $profile "protect" -}}
{{- $modes := dict -}}
{{- range list "cpu-suppress" "batch-resources" "cpuset" "cpu-burst" "group-identity" -}}
{{- $_ := set $modes . "enforce" -}}
{{- end -}}
{{- $_ := set $base "strategies" (dict "modes" $modes) -}}
{{- else -}}
{{- $_ := set $base "strategies" (dict "mode" "enforce" "reclaim" (dict "enable" true)) -}}
{{- $gates := dict -}}
{{- range list "CgroupReconcile" "BlkIOReconcile" "BECPUEvict" "CPUEvict" "BEMemoryEvict" "MemoryEvict" -}}
{{- $_ := set $gates . true -}}
{{- end -}}
{{- $_ := set $base "featureGates" $gates -}}
{{- end -}}
{{- $_ := set $base "nri" (dict "enable" false) -}}
{{- if and .Values.agent.hookServer.enabled (ne $profile "observe") -}}
{{- $hooks := dict "enable" true "socket" "/host/hook-server/koordlet.sock" "folder" "/host/hookserver.d" -}}
{{- $_ := set $hooks "hostSocket" (printf "%s/koordlet.sock" .Values.agent.hookServer.folder) -}}
{{- $_ := set $base "hookServer" (set $hooks "runtime" .Values.agent.hookServer.runtime) -}}
{{- else if and .Values.agent.nri.enabled (ne $profile "observe") -}}
{{- $_ := set $base "nri" (dict "socket" "/host/nri/nri.sock") -}}
{{- end -}}
{{- if .Values.agent.devices.enabled -}}
{{- $_ := set $base "featureGates" (merge (dict "Accelerators" true "RDMADevices" true "GPUEnvInject" true "RDMADeviceInject" true) ($base.featureGates | default dict)) -}}
{{- if .Values.agent.devices.filesFolder -}}
{{- $_ := set $base "devices" (dict "folder" "/host/devices") -}}
{{- end -}}
{{- end -}}
{{- if .Values.agent.configMap -}}
{{- $_ := set $base "configmapName" .Values.agent.configMap -}}
{{- end -}}
{{- if .Values.agent.podResources.enabled -}}
{{- $_ := set $base "featureGates" (merge (dict "PodResourcesProxy" true) ($base.featureGates | default dict)) -}}
{{- $_ := set $base "podResources" (dict "kubeletSocket" "/host/kubelet-pod-resources/kubelet.sock" "socket" "/host/pod-resources/kubelet.sock") -}}
{{- end -}}
{{- if .Values.agent.network.enabled -}}
{{- $_ := set $base "featureGates" (merge (dict "TCNetworkQoS" true) ($base.featureGates | default dict)) -}}
{{- end -}}
{{- if .Values.agent.terwayFolder -}}
{{- $_ := set $base "featureGates" (merge (dict "TerwayQoS" true) ($base.featureGates | default dict)) -}}
{{- $_ := set $host "terwayQos" "/host/terway" -}}
{{- end -}}
{{- $measure := .Values.agent.measure -}}
{{- range $value, $gate := dict "performance" "CPICollector" "coldPages" "ColdPageCollector" "caches" "ResctrlCollector" -}}
{{- if index $measure $value -}}
{{- $_ := set $base "featureGates" (merge (dict $gate true) ($base.featureGates | default dict)) -}}
{{- end -}}
{{- end -}}
{{- if ne $measure.network "none" -}}
{{- $_ := set $base "measure" (dict "network" $measure.network) -}}
{{- end -}}
{{- if or $measure.coldPages $measure.caches -}}
{{- $_ := set $host "sys" "/host/sys" -}}
{{- end -}}
{{- include "koord.settings" (list . $base .Values.agent.settings) -}}
{{- end }}

{{- define "koord.device-daemon-settings" -}}
{{- $values := .Values.deviceDaemon -}}
{{- $base := dict "printsOutputFile" "/host/devices/ic-device" -}}
{{- if $values.labelsFolder -}}
{{- $_ := set $base "labelsFile" "/host/features.d/koord" -}}
{{- end -}}
{{- if $values.vendorTools -}}
{{- $_ := set $base "dev" "/host/root/dev" -}}
{{- $_ := set $base "tools" (dict "root" "/host/root") -}}
{{- end -}}
{{- include "koord.settings" (list . $base $values.settings) -}}
{{- end }}

{{/* A ConfigMap with the settings of one process. Call with (list . "process" "text"). */}}
{{- define "koord.settings-map" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: koord-{{ index . 1 }}
  namespace: {{ (index . 0).Release.Namespace }}
  labels: {{- include "koord.labels" (list (index . 0) (index . 1 | replace "extender" "scheduler")) | nindent 4 }}
data:
  settings.yaml: |
    {{- index . 2 | nindent 4 }}
{{- end }}

{{/* What `koord render scheduler-config` prints, with the values put in. The reasons are in that file's comments. */}}
{{- define "koord.scheduler-configuration" -}}
{{- $values := .Values.scheduler -}}
{{- $config := required "files/scheduler/beside.yaml is missing from the chart" (.Files.Get "files/scheduler/beside.yaml") | fromYaml -}}
{{- $_ := set $config.leaderElection "resourceNamespace" .Release.Namespace -}}
{{- $_ := set $config.clientConnection "qps" $values.queriesPerSecond -}}
{{- $_ := set $config.clientConnection "burst" (mul 2 $values.queriesPerSecond) -}}
{{- $_ := set $config "podMaxBackoffSeconds" $values.maxBackoffSeconds -}}
{{- if $values.percentageOfNodesToScore -}}
{{- $_ := set $config "percentageOfNodesToScore" $values.percentageOfNodesToScore -}}
{{- end -}}
{{- $_ := set (first $config.profiles) "schedulerName" $values.schedulerName -}}
{{- range $entry := $config.extenders -}}
{{- $_ := set $entry "httpTimeout" (printf "%ds" (int (hasKey $entry "bindVerb" | ternary $values.bindTimeoutSeconds $values.filterTimeoutSeconds))) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}
