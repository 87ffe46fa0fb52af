import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import type { AwsCredential, SignableRequest } from '../../core/catalog/index.ts'
import { missingPackages, UnsentError } from '../attempt/failure.ts'
import type { LineSigner, SignedHeaders } from './signer.ts'

const PACKAGES = '@smithy/signature-v4 @smithy/eventstream-codec @aws-sdk/credential-provider-node'

/** Signs by AWS Signature Version 4, with the credentials that the AWS SDKs would find. */
export class AwsSigner implements LineSigner {
  readonly needsBody = true
  readonly #credential: AwsCredential
  #loaded: Promise<Sign> | undefined

  constructor(credential: AwsCredential) {
    this.#credential = credential
  }

  async sign({ method, url, headers, body }: SignableRequest): Promise<SignedHeaders> {
    this.#loaded ??= load(this.#credential)
    const sign = await this.#loaded.catch((error: unknown) => {
      this.#loaded = undefined
      throw error
    })
    const { protocol, hostname, port, host, pathname, searchParams } = new URL(url)
    try {
      const { headers: signed } = await sign({
        method,
        protocol,
        hostname,
        ...(port !== '' && { port: Number(port) }),
        path: pathname,
        query: valuesByName(searchParams),
        headers: { host, ...(headers['content-type'] && { 'content-type': headers['content-type'] }) },
        ...(body && { body }),
      })
      return withoutHost(signed)
    } catch (error) {
      // The names of these errors say what is missing; their texts name files and profiles.
      const name = error instanceof Error ? error.name : 'Error'
      throw new UnsentError(`no AWS credentials: ${/^\w{1,60}$/.test(name) ? name : 'Error'}`)
    }
  }
}

/** Returns the values of each name of a query, in one pass: callers may send thousands of fields. */
function valuesByName(query: URLSearchParams): Record<string, string[]> {
  const fields = Map.groupBy(query, ([name]) => name)
  return Object.fromEntries(Array.from(fields, ([name, same]) => [name, same.map(([, value]) => value)]))
}

/** A request to sign, in the form of the AWS SDKs. */
interface AwsRequest {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly path: string
  readonly query: Record<string, string[]>
  readonly headers: Record<string, string>
  readonly body?: Uint8Array
}

type Sign = (request: AwsRequest) => Promise<{ readonly headers: Record<string, string> }>

async function load({ region, service }: AwsCredential): Promise<Sign> {
  const [{ SignatureV4 }, { defaultProvider }] = await Promise.all([
    import('@smithy/signature-v4'),
    import('@aws-sdk/credential-provider-node'),
  ]).catch(missingPackages(PACKAGES))
  // The provider keeps the credentials until shortly before their end.
  const signer = new SignatureV4({ service, region, credentials: defaultProvider(), sha256: Sha256 })
  return (request) => signer.sign(request)
}

type Bytes = string | ArrayBuffer | ArrayBufferView

/** Node's own SHA-256 in the form that the signer wants: a body of megabytes takes it milliseconds. */
class Sha256 {
  readonly #hash: Hash | Hmac

  constructor(secret?: Bytes) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', viewOf(secret))
  }

  update(bytes: Bytes): void {
    this.#hash.update(viewOf(bytes))
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }
}

function viewOf(bytes: Bytes): string | Uint8Array {
  if (typeof bytes === 'string') return bytes
  return ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes)
}

/** The connection says its host itself. */
function withoutHost({ host: _, ...headers }: Record<string, string>): SignedHeaders {
  return headers
}
