import type { Call, Logger } from 'express-model-gateway'

/** Returns a function that logs one line at the end of a call, without secrets and prompts. */
export function accessLog(logger: Logger): (call: Call) => void {
  return (call) => {
    const { outcome, principal, routing } = call
    const fields = {
      requestId: call.id,
      method: call.method,
      path: call.shortPath,
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
}
