{{/* Whether the API server knows ValidatingAdmissionPolicies; empty where it does not. */}}
{{- define "koord.has-policies" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}yes{{- end -}}
{{- end }}

{{/* The spec of a policy with its variables resolved: each expression in brackets where its name was. API servers before
     Kubernetes 1.36 keep the variables of all policies in one map without a lock: to change a policy that has some may
     crash them while they evaluate another one (kubernetes/kubernetes#135757). An expression is evaluated as often as it
     is named: bind it outside of a loop, as in [variables.x].all(x, ...). Call with the spec as text: variables right
     before validations, expressions as literal blocks, each variable above those that use it.
     API servers check each expression against every kind that its policy names, and note in the status of the policy what
     one of them lacks: dyn(object) stands where fields are not those of all kinds, or are named by a variable. */}}
{{- define "koord.policy-spec" -}}
{{- $parts := regexSplit "(?m)^(?:variables|validations):$" . -1 -}}
{{- if ne (len $parts) 3 -}}
{{- fail "a policy needs variables followed by validations" -}}
{{- end -}}
{{- if regexMatch "(?m)(^|\\s)//" . -}}
{{- fail "a policy has a comment of CEL, which would hide what follows: write it as a comment of YAML" -}}
{{- end -}}
{{- /* Not within names and addresses, such as "variables.example.com". */ -}}
{{- $start := "(^|[^\\w.\"'/-])variables\\." -}}
{{- $validations := last $parts -}}
{{- $resolved := list -}}
{{- range $variable := index $parts 1 | fromYamlArray -}}
{{- $expression := $variable.expression -}}
{{- range $resolved -}}
{{- $expression = regexReplaceAll .pattern $expression .replacement -}}
{{- end -}}
{{- $pattern := printf "%s%s\\b" $start $variable.name -}}
{{- $replacement := $expression | replace "$" "$$" | replace "\n" "\n  " | printf "${1}(%s)" -}}
{{- $resolved = append $resolved (dict "pattern" $pattern "replacement" $replacement) -}}
{{- $validations = regexReplaceAll $pattern $validations ($replacement | replace "\n" "\n      ") -}}
{{- end -}}
{{- with regexFind (printf "%s\\w*" $start) $validations -}}
{{- fail (printf "a policy names %s, which is none of its variables" (trim .)) -}}
{{- end -}}
{{ first $parts }}validations:{{ $validations }}
{{- end }}

{{/* Variables of a policy: metadata before and after, and whether nobody changed owners or finalizers. */}}
{{- define "koord.metadata-variables" -}}
{{- range $part := list "annotations" "labels" }}
- name: {{ $part }}Before
  expression: |-
    oldObject != null && has(oldObject.metadata.{{ $part }}) ? oldObject.metadata.{{ $part }} : {}
- name: {{ $part }}After
  expression: |-
    has(object.metadata.{{ $part }}) ? object.metadata.{{ $part }} : {}
{{- end }}
{{- range $part := list "ownerReferences" "finalizers" }}
- name: {{ $part }}Before
  expression: |-
    oldObject != null && has(oldObject.metadata.{{ $part }}) ? oldObject.metadata.{{ $part }} : []
- name: {{ $part }}After
  expression: |-
    has(object.metadata.{{ $part }}) ? object.metadata.{{ $part }} : []
{{- end }}
- name: sameOwners
  expression: |-
    variables.ownerReferencesBefore == variables.ownerReferencesAfter &&
    variables.finalizersBefore == variables.finalizersAfter
{{- end }}
