/** The words for members that have no counterpart. */
export const NO_COUNTERPART = 'has no counterpart here'

const LIMIT = 'a line has no limit of its own: it rests after a 429 of the provider'
const CALLERS = 'is not added to requests here: callers send it'
const RETRIES = 'is one number for all models here: routing.maxAttempts'
const TAGS = 'lines are not chosen by tags: give each group a model of its own'
const BUDGET = 'is not converted: set budgets with POST /admin/budgets'
const LINE_BUDGET = 'budgets are of accounts, keys, users and tags, not of lines or providers'
const REDIS = 'set REDIS_URL to count limits of callers for several machines'
const CACHE = 'is not converted: give each model whose answers may be given again a "cache"'
const TELEMETRY =
  'metrics and traces go to OTEL_EXPORTER_OTLP_ENDPOINT, or are at /metrics; each call is in the call log'
const OWN_DATABASE = 'is not read: this gateway has a database of its own: set DATABASE_URL'

/** By member of `litellm_params`. */
export const PARAM_HINTS: Readonly<Record<string, string>> = {
  rpm: LIMIT,
  tpm: LIMIT,
  rpm_limit: LIMIT,
  tpm_limit: LIMIT,
  max_parallel_requests: LIMIT,
  api_version: "is not needed at Azure's /openai/v1, which the line uses",
  num_retries: RETRIES,
  max_retries: RETRIES,
  tags: TAGS,
  max_budget: LINE_BUDGET,
  budget_duration: LINE_BUDGET,
  temperature: CALLERS,
  top_p: CALLERS,
  seed: CALLERS,
  stop: CALLERS,
  stream: CALLERS,
  thinking: CALLERS,
  reasoning_effort: CALLERS,
}

/** By member of an entry of `model_list`. */
export const DEPLOYMENT_HINTS: Readonly<Record<string, string>> = { rpm: LIMIT, tpm: LIMIT }

/** By member of `router_settings`. */
export const ROUTER_HINTS: Readonly<Record<string, string>> = {
  redis_host: REDIS,
  redis_port: REDIS,
  redis_password: REDIS,
  redis_url: REDIS,
  enable_pre_call_checks: 'is always on: lines whose contextWindow is too small are left out',
  enable_pre_call_check: 'is always on: lines whose contextWindow is too small are left out',
  context_window_fallbacks:
    'is not taken: add these models to the fallbacks of the model, and set its contextWindow: a call that is too long for it goes to them. They serve calls after its failures, too',
  content_policy_fallbacks: 'is not taken: a refusal of the provider goes to the caller',
  max_fallbacks: 'a call can go to each of the fallbacks of its model',
  retry_policy: 'the outcome of an attempt decides whether another line is tried',
  model_group_retry_policy: 'the outcome of an attempt decides whether another line is tried',
  allowed_fails_policy: "a line's circuit counts failures of the line, whatever they are",
  disable_cooldowns: "circuits cannot be switched off: set errorPercent of a line's circuit to 100",
  enable_tag_filtering: TAGS,
  provider_budget_config: LINE_BUDGET,
  retry_after: 'the next line is tried at once; a line that says 429 rests as long as it asks',
  cache_responses: CACHE,
}

/** By member of `litellm_settings`. */
export const MODULE_HINTS: Readonly<Record<string, string>> = {
  ...ROUTER_HINTS,
  cache: CACHE,
  cache_params: CACHE,
  callbacks: TELEMETRY,
  success_callback: TELEMETRY,
  failure_callback: TELEMETRY,
  service_callback: TELEMETRY,
  service_callbacks: TELEMETRY,
  max_budget: BUDGET,
  budget_duration: BUDGET,
  set_verbose: 'set LOG_LEVEL',
  json_logs: 'is always on: logs are JSON',
}

/** By member of `general_settings`. */
export const GENERAL_HINTS: Readonly<Record<string, string>> = {
  database_url: 'set DATABASE_URL, to a new database: that of LiteLLM cannot be read',
  database_connection_pool_limit: OWN_DATABASE,
  database_connection_timeout: OWN_DATABASE,
  store_model_in_db: 'models in the database are not in the file: add them to the config',
  custom_auth: 'issue keys here, or mount the middlewares behind an authentication of your own',
  max_parallel_requests: 'give accounts limits.concurrency',
  global_max_parallel_requests: 'give accounts limits.concurrency',
  use_x_forwarded_for: 'set trustProxy to the addresses of your proxies',
  max_budget: BUDGET,
  budget_duration: BUDGET,
  allow_requests_on_db_unavailable: 'see onLedgerAway and onStoreError',
  pass_through_endpoints: 'add a rule of passThrough for each path',
  alerting:
    'webhooks report budgets, balances, keys and lines: POST /admin/webhooks; other alerts are for what reads the metrics',
  forward_client_headers_to_llm_api: 'headers of callers are not forwarded: give the line headers',
}

/** By member of the file. */
export const TOP_HINTS: Readonly<Record<string, string>> = {
  include: 'other files are not read: convert one file that has everything',
  guardrails: 'add "guards" to the config',
  callback_settings: TELEMETRY,
  files_settings: 'add a rule of passThrough for /v1/files, with the line that keeps them',
  finetune_settings: 'add a rule of passThrough for /v1/fine_tuning, with the line that runs them',
}
