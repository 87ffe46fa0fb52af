import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { BrowserJar } from './browser-jar.ts'
import { type Lies, type LyingProvider, startLyingProvider } from './lying-provider.ts'

const CONFIG = {
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost:1/v1', models: { m: 'm' } },
  ],
}

const cleanUp = cleaningUp()

const gatewayWith = (issuer: string): Promise<AssembledGateway> =>
  assembledGateway(cleanUp, CONFIG, {
    adminToken: 'admin-token-of-this-test',
    signInProvider: {
      issuer,
      clientId: 'console',
      clientSecret: 'secret',
      roleClaim: 'roles',
      scope: 'openid',
      redirectUri: undefined,
    },
  })

const hasSession = (jar: BrowserJar) => jar.set.some((line) => line.startsWith('gateway_session='))

describe('a wrong claim of a provider opens nothing', () => {
  let provider: LyingProvider
  let gateway: AssembledGateway
  before(async () => {
    provider = await startLyingProvider(cleanUp)
    gateway = await gatewayWith(provider.issuer)
  })

  const lies: readonly Lies[] = [
    { nonce: 'another' },
    { nonce: '' },
    { issuer: 'https://login.example.com' },
    { audience: 'another-client' },
    { expiresIn: -120 },
    { foreignKey: true },
    { unsigned: true },
    { noIdToken: true },
  ]
  for (const lie of lies) {
    it(JSON.stringify(lie), async () => {
      provider.lies = lie
      const jar = new BrowserJar()
      assert.equal(
        await jar.follow(`${gateway.url}/console/sign-in`),
        `${gateway.url}/console?refused=failed`,
      )
      assert.equal(hasSession(jar), false)
    })
  }

  it('and what it says rightly does', async () => {
    provider.lies = {}
    const jar = new BrowserJar()
    assert.equal(await jar.follow(`${gateway.url}/console/sign-in`), `${gateway.url}/console`)
    assert.equal(hasSession(jar), true)
  })

  it('a role of the userinfo counts, also where the claim of the ID token has other names', async () => {
    const honest = await startLyingProvider(cleanUp)
    honest.lies = { roles: ['staff'], userInfo: { sub: 'ada', roles: ['staff', 'viewer'] } }
    const { url } = await gatewayWith(honest.issuer)
    assert.equal(await new BrowserJar().follow(`${url}/console/sign-in`), `${url}/console`)
    honest.lies = { roles: [], userInfo: { sub: 'eve', roles: 'admin' } }
    const end = await new BrowserJar().follow(`${url}/console/sign-in`)
    assert.equal(end, `${url}/console?refused=failed`, 'somebody else')
  })

  it('so does one that describes itself as another', async () => {
    const impostor = await startLyingProvider(cleanUp)
    impostor.lies = { discoveredIssuer: 'https://login.example.com' }
    const { url } = await gatewayWith(impostor.issuer)
    const end = await new BrowserJar().follow(`${url}/console/sign-in`)
    assert.equal(end, `${url}/console?refused=away`)
  })
})

describe('a provider that is away', () => {
  it('affects neither the start nor tokens, is logged, and is asked again at the next sign-in', async () => {
    const provider = await startLyingProvider(cleanUp)
    provider.hangs = true
    const { url, send, logged } = await gatewayWith(provider.issuer)
    const jar = new BrowserJar()
    const began = performance.now()
    const [end, models, admin] = await Promise.all([
      jar.follow(`${url}/console/sign-in`),
      send('/v1/models').then((response) => [response.status, performance.now() - began] as const),
      fetch(`${url}/admin/session`, { headers: { authorization: 'Bearer admin-token-of-this-test' } }),
    ])
    assert.equal(end, `${url}/console?refused=away`)
    assert.ok(performance.now() - began < 15_000)
    assert.equal(models[0], 200)
    assert.ok(models[1] < 4000, 'nobody waited for the provider')
    assert.equal(admin.status, 200)
    assert.ok(logged.some(({ message }) => message.includes('cannot be reached')))
    provider.hangs = false
    assert.equal(await jar.follow(`${url}/console/sign-in`), `${url}/console`)
  })
})

describe('a provider that fails in the middle of a sign-in', () => {
  const send = (status: number, type: string, body: string) => (res: ServerResponse) =>
    void res.writeHead(status, { 'content-type': type }).end(body)
  const failures = {
    'an error of its own': send(500, 'application/json', '{"error":"server_error"}'),
    'the page of a proxy': send(502, 'text/html', '<h1>Bad Gateway</h1>'),
    'a limit of its own': send(429, 'application/json', '{"errorCode":"E0000047"}'),
    'a page of maintenance': (res: ServerResponse) =>
      void res.writeHead(302, { location: 'https://status.example/' }).end(),
    'a page in place of JSON': send(200, 'text/html', '<h1>Hello</h1>'),
    'half of an answer': send(200, 'application/json', '{"keys":'),
    'a broken connection': (res: ServerResponse) => void res.destroy(),
  }

  it('is away, and its failures are no wrong tokens', async () => {
    const provider = await startLyingProvider(cleanUp)
    const { url, logged } = await gatewayWith(provider.issuer)
    for (const path of ['/token', '/keys'])
      for (const [name, answer] of Object.entries(failures)) {
        provider.answers = { [path]: answer }
        const end = await new BrowserJar().follow(`${url}/console/sign-in`)
        assert.equal(end, `${url}/console?refused=away`, `${path}: ${name}`)
      }
    provider.answers = {}
    // Only the first wrong token of an address is logged.
    await fetch(`${url}/admin/session`, { headers: { authorization: 'Bearer wrong' } })
    assert.ok(logged.some(({ message }) => message.includes('a wrong token was sent')))
    assert.equal(await new BrowserJar().follow(`${url}/console/sign-in`), `${url}/console`)
  })

  it('is not away if it refuses what the browser brought, in whatever form', async () => {
    const provider = await startLyingProvider(cleanUp)
    const { url } = await gatewayWith(provider.issuer)
    provider.answers = { '/token': send(400, 'text/html', '<h1>Bad Request</h1>') }
    assert.equal(await new BrowserJar().follow(`${url}/console/sign-in`), `${url}/console?refused=failed`)
  })
})

describe('guessing at the callback', () => {
  it('is slowed by address, together with wrong tokens', async () => {
    const provider = await startLyingProvider(cleanUp)
    const { url } = await gatewayWith(provider.issuer)
    provider.lies = { nonce: 'another' }
    const attempt = async () => {
      const jar = new BrowserJar()
      const callback = await jar.follow(`${url}/console/sign-in`, (next) => next.includes('/callback'))
      return fetch(callback, {
        redirect: 'manual',
        headers: {
          cookie: [...jar.cookies].map(([name, value]) => `${name.split(' ')[1]}=${value}`).join('; '),
        },
        signal: AbortSignal.timeout(400),
      }).catch(() => undefined)
    }
    for (let i = 0; i < 20; i++) assert.equal((await attempt())?.status, 303)
    // Their answers wait, and with more than ten of them waiting nothing is tried at all.
    const attempts = []
    for (let i = 0; i < 14; i++) {
      attempts.push(attempt())
      // Only two of a network are at the provider at once.
      await sleep(25)
    }
    await Promise.all(attempts)
    let refused = ''
    // On a busy machine some of them have not got as far, or not in time.
    for (let i = 0; i < 20 && !refused.includes('slow_down'); i++)
      refused = (await attempt())?.headers.get('location') ?? ''
    assert.match(refused, /refused=slow_down/)
    const answers = await Promise.all(
      Array.from({ length: 14 }, () =>
        fetch(`${url}/admin/session`, { headers: { authorization: 'Bearer wrong' } }),
      ),
    )
    assert.ok(answers.some(({ status }) => status === 429))
  })
})
