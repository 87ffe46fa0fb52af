import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/index.ts'

/** Whether answers about resources of a kind name an address of the upstream, which clients follow with their key. */
export function namesResults(kind: string): boolean {
  return kind === 'message_batch'
}

/**
 * Returns the answer about a batch of messages with the address of its results at the gateway.
 *
 * @param base the address of the gateway that `/messages` follows.
 */
export function withOwnResults(json: JsonObject, base: string): JsonObject {
  const { id, results_url: results } = json
  if (typeof id !== 'string' || typeof results !== 'string') return json
  return { ...json, results_url: `${base}/messages/batches/${encodeURIComponent(id)}/results` }
}

/** Returns the bytes of such an answer. */
export function bytesWithOwnResults(body: Buffer, base: string): Buffer {
  const json = parseJson(body.toString())
  const own = isJsonObject(json) ? withOwnResults(json, base) : json
  return own === json ? body : Buffer.from(JSON.stringify(own))
}
