import type { SignableRequest } from '../../core/catalog/index.ts'

/** The headers that carry the credentials of a request, by names in lower case. They replace those of the same name. */
export type SignedHeaders = Readonly<Record<string, string>>

/** Gives requests to one line their credentials, where these are no fixed text. */
export interface LineSigner {
  /** Whether it signs the body, which must be whole then. */
  readonly needsBody: boolean
  /** Returns the headers to add. Rejects with an `UnsentError`. */
  sign(request: SignableRequest): SignedHeaders | Promise<SignedHeaders>
  /** Drops what a line refused with 401, so that the request may be signed anew. Absent: nothing else would come of it. */
  refused?(headers: SignedHeaders): void
}
