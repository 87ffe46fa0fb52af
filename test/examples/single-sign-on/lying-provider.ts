import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CleanUp } from '../../support/clean-up.ts'
import { until } from '../../support/until.ts'

/** The claims that a provider may get wrong. */
export interface Lies {
  readonly issuer?: string
  readonly audience?: string
  readonly nonce?: string
  readonly expiresIn?: number
  readonly foreignKey?: boolean
  readonly unsigned?: boolean
  readonly noIdToken?: boolean
  readonly discoveredIssuer?: string
  /** In the ID token. */
  readonly roles?: string | readonly string[]
  /** The userinfo that it returns; undefined: it has none. */
  readonly userInfo?: object
}

/** A provider whose answers a test decides. It knows one person, an administrator. */
export interface LyingProvider {
  readonly issuer: string
  lies: Lies
  /** Whether it takes requests and never answers. */
  hangs: boolean
  /** Other answers than its own, by path. */
  answers: Readonly<Record<string, (res: ServerResponse) => void>>
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

export async function startLyingProvider(cleanUp: CleanUp): Promise<LyingProvider> {
  const [own, foreign] = [newKey(), newKey()]
  let nonce = ''
  const server = createServer((req, res) => {
    if (provider.hangs) return
    const { pathname, searchParams } = new URL(req.url ?? '/', issuer)
    const json = (body: object) => res.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    const answer = provider.answers[pathname]
    if (answer) answer(res)
    else if (pathname === '/.well-known/openid-configuration') {
      json({
        issuer: provider.lies.discoveredIssuer ?? issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        ...(provider.lies.userInfo && { userinfo_endpoint: `${issuer}/me` }),
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256'],
      })
    } else if (pathname === '/me') {
      json(provider.lies.userInfo ?? {})
    } else if (pathname === '/keys') {
      json({ keys: [{ ...own.publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256', use: 'sig' }] })
    } else if (pathname === '/authorize') {
      nonce = searchParams.get('nonce') ?? ''
      const back = new URL(searchParams.get('redirect_uri') ?? '')
      back.searchParams.set('code', 'code')
      back.searchParams.set('state', searchParams.get('state') ?? '')
      res.writeHead(303, { location: back.href }).end()
    } else {
      const idToken = provider.lies.noIdToken ? {} : { id_token: tokenOf() }
      json({ access_token: 'a', token_type: 'Bearer', expires_in: 60, ...idToken })
    }
  })

  function tokenOf(): string {
    const { lies } = provider
    const now = Math.floor(Date.now() / 1000)
    const head = part({ alg: lies.unsigned ? 'none' : 'ES256', kid: 'k' })
    const claims = part({
      iss: lies.issuer ?? issuer,
      aud: lies.audience ?? 'console',
      sub: 'ada',
      roles: lies.roles ?? 'admin',
      nonce: lies.nonce ?? nonce,
      iat: now,
      exp: now + (lies.expiresIn ?? 60),
    })
    if (lies.unsigned) return `${head}.${claims}.`
    const key = (lies.foreignKey ? foreign : own).privateKey
    const signature = sign('sha256', Buffer.from(`${head}.${claims}`), { key, dsaEncoding: 'ieee-p1363' })
    return `${head}.${claims}.${signature.toString('base64url')}`
  }

  server.listen(0, '127.0.0.1')
  await until(() => server.listening, 'the provider listens')
  cleanUp.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider: LyingProvider = { issuer, lies: {}, hangs: false, answers: {} }
  return provider
}
