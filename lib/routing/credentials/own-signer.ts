import { isHeaderName, isHeaderValue } from '../../core/catalog/header-text.ts'
import type { SignableRequest, SignRequest } from '../../core/catalog/index.ts'
import { UnsentError } from '../attempt/failure.ts'
import { redactUpstreamText } from '../attempt/redact-upstream-text.ts'
import type { LineSigner, SignedHeaders } from './signer.ts'

/** Signs by the function of the app. */
export class OwnSigner implements LineSigner {
  readonly needsBody = false
  readonly #sign: SignRequest

  constructor(sign: SignRequest) {
    this.#sign = sign
  }

  async sign(request: SignableRequest): Promise<SignedHeaders> {
    let given: unknown
    try {
      given = await this.#sign(request)
    } catch (error) {
      // Callers can read their call log, and the text may hold anything.
      const words = error instanceof Error ? redactUpstreamText(error.message) : ''
      throw new UnsentError(`"sign" of the line failed${words === '' ? '' : `: ${words}`}`)
    }
    return checked(given)
  }
}

const NO_HEADERS = '"sign" of the line must return headers'

function checked(given: unknown): SignedHeaders {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new UnsentError(NO_HEADERS)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== 'string' || !isHeaderValue(value) || !isHeaderName(name))
      throw new UnsentError(NO_HEADERS)
    headers[name.toLowerCase()] = value
  }
  return headers
}
