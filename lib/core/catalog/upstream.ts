/** The path of an endpoint on a line. `{model}` stands for the line's name of the model, percent-encoded. */
export interface PathTemplate {
  readonly plain: string
  /** The path of requests for a stream. */
  readonly stream: string
}

/** The members of a request's body that differ on a line, as JSON texts; `null` leaves a member out. */
export type BodyEdits = Readonly<Record<string, string | null>>

/** How the requests to a line differ from those of its protocol. */
export interface LineDialect {
  /** The paths behind `basePath`, by the names of their endpoints. Defaults to those of the protocol. */
  readonly paths?: ReadonlyMap<string, PathTemplate> | undefined
  /** The query of every request, encoded, such as `api-version=2024-10-21`. Defaults to none. */
  readonly query?: string | undefined
  /** Changes of the bodies of model calls. Defaults to none. */
  readonly body?: BodyEdits | undefined
}

/** The grant "client credentials" of OAuth 2.0, as of Microsoft Entra. */
export interface OAuthCredential {
  readonly kind: 'oauth'
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string | undefined
}

/** A Google account; without credentials the one that Google's libraries find. */
export interface GoogleCredential {
  readonly kind: 'google'
  /** The content of a file of credentials. */
  readonly credentials: Readonly<Record<string, unknown>> | undefined
}

/** The AWS account that AWS's libraries find. */
export interface AwsCredential {
  readonly kind: 'aws'
  readonly region: string
  /** The name of the service in signatures, such as `bedrock`. */
  readonly service: string
}

/** A credential that is fetched, or that signs each request. */
export type LineCredential = OAuthCredential | GoogleCredential | AwsCredential

/** A request to a line, before it is sent. */
export interface SignableRequest {
  readonly method: string
  /** The whole address, with the query. */
  readonly url: string
  /** The headers so far, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Undefined if there is none, or if it is passed on unread. */
  readonly body: Uint8Array | undefined
}

/**
 * Returns headers that sign a request. They replace those of the same name. Whatever it throws, and if it takes longer
 * than the connect clock, only this attempt fails.
 *
 * @example
 * const sign: SignRequest = ({ body }) => ({
 *   'x-signature': createHmac('sha256', secret).update(body ?? '').digest('hex'),
 * })
 */
export type SignRequest = (
  request: SignableRequest,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>

/** The credentials of a line that are not a fixed key. */
export interface LineAccount {
  /** A credential that changes, in place of `apiKey`. Defaults to none. */
  readonly credential?: LineCredential | undefined
  /** Signs each request, in place of `credential`. Defaults to none. */
  readonly sign?: SignRequest | undefined
}

/** The certificates of a line, as PEM texts. */
export interface LineTls {
  /** An authority that is trusted beside those of Node. */
  readonly ca?: string | undefined
  /** The certificate of this gateway, and its key. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** How a line is reached. */
export interface LineRoute {
  /** The URL of a proxy, through which connections are made by `CONNECT`. Defaults to none. */
  readonly proxy?: string | undefined
  readonly tls?: LineTls | undefined
}
