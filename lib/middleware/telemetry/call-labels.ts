import type { Call } from '../../core/call/index.ts'
import type { Catalog } from '../../core/catalog/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { OTHER } from './attributes.ts'

/**
 * What the metrics of a call are told apart by. Each is one of a list that the app itself makes: the operations, the
 * models and lines of its catalogue, the table of codes. Nothing a caller sends stands here as it was sent.
 */
export interface CallLabels {
  /** `other` where a line was asked for something else than the operations of the table; undefined: none was asked. */
  readonly operation: string | undefined
  /** undefined: none was asked for. */
  readonly model: string | undefined
  /** Of the line that was tried last; undefined: none was. */
  readonly provider: string | undefined
  readonly error: ErrorCode | typeof OTHER | undefined
}

/** The names that the conventions have for operations; the others keep their own. */
const CONVENTIONAL: Readonly<Record<string, string>> = {
  'chat.completions': 'chat',
  messages: 'chat',
  responses: 'chat',
  completions: 'text_completion',
}

/** Reads the labels of a call at its end. */
export function labelsOf(call: Call, catalog: Catalog | undefined): CallLabels {
  const { request, routing, model, outcome } = call
  return {
    operation: request
      ? (CONVENTIONAL[request.operation.name] ?? request.operation.name)
      : routing
        ? OTHER
        : undefined,
    model: request ? request.model.id : model === null ? undefined : knownModel(model, catalog),
    provider: routing?.attempts.at(-1)?.provider,
    error: outcome?.errorCode ?? (outcome && outcome.status >= 400 ? OTHER : undefined),
  }
}

/** The id of a model of the catalogue. */
export function knownModel(model: string, catalog: Catalog | undefined): string {
  return catalog?.models.has(model) ? model : OTHER
}
