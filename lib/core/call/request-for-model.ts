import type { Model } from '../catalog/index.ts'
import { editMembers } from '../json/index.ts'
import type { CallRequest, RequestBody } from './parts.ts'

/** Returns a body that asks for a model. */
export function bodyFor({ raw, json }: RequestBody, model: string): RequestBody {
  if (json.model === model) return { raw, json }
  // A form has no raw bytes.
  const isForm = raw.length === 0
  return {
    raw: isForm ? raw : editMembers(raw, { model: JSON.stringify(model) }),
    json: { ...json, model },
  }
}

/** Returns a request as it is for one of its fallback models. */
export function requestFor(request: CallRequest, model: Model): CallRequest {
  return { ...request, model, body: bodyFor(request.body, model.id) }
}
