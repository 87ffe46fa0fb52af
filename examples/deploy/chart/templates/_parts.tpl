{{- define "gateway.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.metadata" -}}
name: {{ include "gateway.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "gateway.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The number of pods that there are at least, and whether there can be several. */}}
{{- define "gateway.leastPods" -}}
{{ if .Values.autoscaling.enabled }}{{ .Values.autoscaling.minReplicas }}{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}
{{- define "gateway.mostPods" -}}
{{ if .Values.autoscaling.enabled }}{{ .Values.autoscaling.maxReplicas }}{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}

{{- /* Fails with a message that says what to set. */}}
{{- define "gateway.check" -}}
{{- $values := .Values }}
{{- range $path, $given := dict "image.repository" $values.image.repository "existingSecret" $values.existingSecret "config" $values.config }}
{{- if not $given }}{{ fail (printf "%s: is required; see values.yaml" $path) }}{{ end }}
{{- end }}
{{- if not (has $values.database (list "postgres" "sqlite")) }}{{ fail "database: must be \"postgres\" or \"sqlite\"" }}{{ end }}
{{- if not (has $values.limits (list "redis" "memory")) }}{{ fail "limits: must be \"redis\" or \"memory\"" }}{{ end }}
{{- if gt (include "gateway.mostPods" . | int) 1 }}
{{- if ne $values.database "postgres" }}{{ fail "database: several pods need \"postgres\", which they share; or set replicas: 1" }}{{ end }}
{{- if ne $values.limits "redis" }}{{ fail "limits: several pods need \"redis\", or each counts by itself; or set replicas: 1" }}{{ end }}
{{- end }}
{{- if and $values.ingress.enabled (not $values.ingress.host) }}{{ fail "ingress.host: is required with an ingress" }}{{ end }}
{{- end }}
