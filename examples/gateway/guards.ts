import { type RequestHandler, Router } from 'express'
import { callOf, guard } from 'express-model-gateway'
import type { LoadedConfig } from 'express-model-gateway/config'
import { type GuardFunction, moderation, patterns } from 'express-model-gateway/guard'
import type { Services } from './services.ts'

type GuardConfig = LoadedConfig['guards'][number]

/** Returns the guards of the config, in their order. */
export function guardsOf(guards: readonly GuardConfig[], catalog: Services['catalog']): RequestHandler {
  if (guards.length === 0) return (_req, _res, next) => next()
  const router = Router()
  for (const each of guards) {
    const { name, keys, input, output, windowChars, timeoutMs, onError } = each
    const check = checkOf(each, catalog)
    const chosen = keys && new Set(keys)
    router.use(
      guard({
        ...{ name, windowChars, timeoutMs, onError },
        ...(input && { input: check }),
        ...(output && { output: check }),
        ...(chosen && { skip: (req) => !chosen.has(callOf(req).principal?.keyId ?? '') }),
      }),
    )
  }
  return router
}

function checkOf(
  { patterns: rules, moderation: asked }: GuardConfig,
  catalog: Services['catalog'],
): GuardFunction {
  if (rules) {
    const { refuse, mask, replacement, reason } = rules
    return patterns({
      refuse,
      mask,
      ...(replacement !== undefined && { replacement }),
      ...(reason !== undefined && { reason }),
    })
  }
  const { line: id, model } = asked as NonNullable<GuardConfig['moderation']>
  return (text, call) => {
    // A reload may give the line another address or key.
    const line = catalog(call).lines.find((each) => each.id === id)
    if (!line) throw new Error(`there is no line "${id}"`)
    const { origin, basePath, apiKey, headers } = line
    return moderation({
      baseUrl: origin + basePath,
      headers,
      ...(apiKey !== undefined && { apiKey }),
      ...(model !== undefined && { model }),
    })(text, call)
  }
}
