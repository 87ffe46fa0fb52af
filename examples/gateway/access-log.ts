import type { Call, Logger } from 'express-model-gateway'

/** Logs one line for each call that has ended. Never a secret, never a prompt. */
export function accessLog(logger: Logger): (call: Call) => void {
  const note = (call: Call): void => {
    const { outcome, principal, routing } = call
    const fields = {
      requestId: call.id,
      method: call.method,
      path: call.path,
      status: outcome?.status,
      code: outcome?.errorCode ?? undefined,
      outcome: outcome?.finish,
      ms: Date.now() - call.startedAt,
      account: principal?.accountId,
      key: principal?.keyId,
      model: call.model ?? undefined,
      line: routing?.attempts.at(-1)?.line,
      attempts: routing?.attempts.length,
    }
    logger.info(fields, 'call')
  }
  return (call) => call.onEnd('access log', note)
}
