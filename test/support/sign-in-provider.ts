import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import type { CleanUp } from './clean-up.ts'
import { until } from './until.ts'

/** A provider of OpenID Connect on loopback: a site of its own beside 127.0.0.1. */
export interface SignInProvider {
  /** The settings of the gateway for this provider. */
  readonly settings: {
    readonly issuer: string
    readonly clientId: string
    readonly clientSecret: string
    readonly roleClaim: string
    readonly scope: string
    readonly redirectUri: undefined
  }
  /** The person who signs in next; the provider asks for no password. */
  person: string
  /** The promise that its exchange of codes waits for. */
  slow: Promise<void> | undefined
  /** Answers from now on, for a gateway at this address, which has this secret. Defaults to that of the settings. */
  serve(gateway: string, secret?: string): void
  /** Every request that it got: method and path. */
  readonly asked: readonly string[]
}

/** The claims of the people that it knows. */
const PEOPLE: Readonly<Record<string, object>> = {
  ada: { email: 'ada@example.com', groups: 'admin' },
  vic: { email: 'vic@example.com', groups: ['staff', 'viewer'] },
  both: { groups: ['support', 'finance'] },
  nobody: { email: 'nobody@example.com' },
  stranger: { email: 'stranger@example.com', groups: ['Admin', 'root', 'ADMIN '] },
}

export async function startSignInProvider(cleanUp: CleanUp): Promise<SignInProvider> {
  const [clientId, clientSecret] = ['gateway-console', 'secret-of-the-client']
  const asked: string[] = []
  let provider: Provider | undefined
  const answer = (req: IncomingMessage, res: ServerResponse) => void provider?.callback()(req, res)
  const server = createServer((req, res) => {
    asked.push(`${req.method} ${req.url?.split('?')[0]}`)
    if (!provider) res.writeHead(503).end()
    else if (req.url?.startsWith('/interaction/'))
      void provider.interactionFinished(req, res, { login: { accountId: signIn.person } })
    else if (req.url?.startsWith('/token') && signIn.slow) void signIn.slow.then(() => answer(req, res))
    else answer(req, res)
  })
  server.listen(0, 'localhost')
  await until(() => server.listening, 'the provider listens')
  cleanUp.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`
  const scope = 'openid email groups'
  const signIn: SignInProvider = {
    settings: { issuer, clientId, clientSecret, roleClaim: 'groups', scope, redirectUri: undefined },
    person: 'ada',
    slow: undefined,
    asked,
    serve(gateway, secret = clientSecret) {
      provider = new Provider(issuer, {
        clients: [
          {
            client_id: clientId,
            client_secret: secret,
            redirect_uris: [`${gateway}/console/sign-in/callback`],
          },
        ],
        cookies: { keys: ['key-of-this-test'] },
        pkce: { required: () => true },
        claims: { openid: ['sub'], email: ['email'], groups: ['groups'] },
        scopes: ['openid', 'email', 'groups'],
        findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub, ...PEOPLE[sub] }) }),
        interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
        features: { devInteractions: { enabled: false } },
        async loadExistingGrant({ oidc }) {
          const accountId = oidc.session?.accountId
          const grant = new oidc.provider.Grant({ clientId, ...(accountId !== undefined && { accountId }) })
          grant.addOIDCScope(scope)
          await grant.save()
          return grant
        },
      })
    },
  }
  return signIn
}
