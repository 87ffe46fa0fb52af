/** The name of the instrumentation scope. */
export const SCOPE = 'express-model-gateway'

/** Names of the semantic conventions for generative AI and HTTP; our own begin with `model_gateway.`. */
export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  model: 'gen_ai.request.model',
  tokenType: 'gen_ai.token.type',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  error: 'error.type',
  method: 'http.request.method',
  status: 'http.response.status_code',
  route: 'http.route',
  path: 'url.path',
  requestId: 'model_gateway.request_id',
  outcome: 'model_gateway.outcome',
  line: 'model_gateway.line',
  timeoutPhase: 'model_gateway.timeout_phase',
  reason: 'model_gateway.reason',
  limitKind: 'model_gateway.limit.kind',
  limitLevel: 'model_gateway.limit.level',
  guard: 'model_gateway.guard',
  direction: 'model_gateway.direction',
  usageSource: 'model_gateway.usage.source',
  availability: 'model_gateway.availability',
  circuitState: 'model_gateway.circuit.state',
  store: 'model_gateway.store',
  budgetScope: 'model_gateway.budget.scope',
  pool: 'db.client.connection.pool.name',
  connectionState: 'db.client.connection.state',
} as const

/** Stands in for a value outside the known list, which bounds the cardinality. */
export const OTHER = 'other'
