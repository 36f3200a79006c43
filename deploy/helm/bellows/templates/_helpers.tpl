{{- define "bellows.labels" -}}
app.kubernetes.io/name: bellows
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "bellows.server" -}}
{{- if .Values.server -}}
{{ .Values.server }}
{{- else if .Values.nats.enabled -}}
{{- /* The official chart leaves its own name out where the release's has it. */ -}}
tls://{{ .Release.Name }}{{ if not (contains "nats" .Release.Name) }}-nats{{ end }}:4222
{{- else -}}
{{ fail "name a NATS server in `server`, or set nats.enabled" }}
{{- end -}}
{{- end }}

{{/* Settings files are `name = value` lines. */}}
{{- define "bellows.settings" -}}
{{- range $name, $value := . }}
{{ $name }} = {{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end }}

{{- define "bellows.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "bellows.podSecurity" -}}
runAsNonRoot: true
runAsUser: 990
runAsGroup: 990
fsGroup: 990
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "bellows.annotations" -}}
checksum/settings: {{ toJson (list .Values.settings .Values.coordinator.settings .Values.node.settings .Values.server) | sha256sum }}
{{- if not .Values.podMonitor }}
prometheus.io/scrape: "true"
prometheus.io/port: "9464"
{{- end }}
{{- end }}
