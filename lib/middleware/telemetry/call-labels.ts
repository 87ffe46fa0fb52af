import type { Call } from '../../core/call/index.ts'
import type { Catalog } from '../../core/catalog/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { OTHER } from './attributes.ts'

/**
 * The attribute values of a call. Each comes from a list that the app defines: the operations, the models and lines
 * of its catalogue, the table of codes. No value is copied from what a caller sent.
 */
export interface CallLabels {
  /** `other` for a call outside the table of operations, such as pass-through; undefined if no endpoint was reached. */
  readonly operation: string | undefined
  /** Undefined if no model was requested. */
  readonly model: string | undefined
  /** The provider of the line that was tried last; undefined if none was. */
  readonly provider: string | undefined
  readonly error: ErrorCode | typeof OTHER | undefined
}

/** The operations that have a name in the semantic conventions; the others keep their own. */
const CONVENTIONAL: Readonly<Record<string, string>> = {
  'chat.completions': 'chat',
  messages: 'chat',
  responses: 'chat',
  completions: 'text_completion',
}

/** Returns the labels of an ended call. */
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

/** Returns a model's id if the catalogue has it, and `other` if not. */
export function knownModel(model: string, catalog: Catalog | undefined): string {
  return catalog?.models.has(model) ? model : OTHER
}
