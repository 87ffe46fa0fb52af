import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type SignInProvider, startSignInProvider } from '../../support/sign-in-provider.ts'
import { BrowserJar } from './browser-jar.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const CONFIG = {
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost:1/v1', models: { m: 'm' } },
  ],
}
const OWN_PAGE = { 'x-gateway-console': '1', 'sec-fetch-site': 'same-origin' }

let provider: SignInProvider
let gateway: AssembledGateway
const cleanUp = cleaningUp()
before(async () => {
  provider = await startSignInProvider(cleanUp)
  gateway = await assembledGateway(cleanUp, CONFIG, {
    adminToken: ADMIN_TOKEN,
    signInProvider: provider.settings,
  })
  provider.serve(gateway.url)
})
beforeEach(() => {
  provider.person = 'ada'
})

const isCallback = (url: string) => url.includes('/console/sign-in/callback')
const callbackFor = (jar: BrowserJar) => jar.follow(`${gateway.url}/console/sign-in`, isCallback)

async function signedIn(person: string): Promise<BrowserJar> {
  provider.person = person
  const jar = new BrowserJar()
  assert.equal(await jar.follow(`${gateway.url}/console/sign-in`), `${gateway.url}/console`)
  return jar
}

async function whoIs(jar: BrowserJar, headers: Record<string, string> = OWN_PAGE) {
  const response = await jar.get(`${gateway.url}/admin/session`, headers)
  const body = (await response.json()) as { name?: string; roles?: string[]; expires_at?: string }
  return { status: response.status, ...body }
}

/** A cookie of the session, as nobody may have it. */
const sessionCookie = (jar: BrowserJar) =>
  [...jar.cookies].find(([name]) => name.endsWith('gateway_session'))?.[1]

const noSession = (jar: BrowserJar) => assert.equal(sessionCookie(jar), undefined)

describe('signing in at a provider', () => {
  it('gives the roles of the claim and the name for the change log, for at most eight hours', async () => {
    const jar = await signedIn('ada')
    const { status, name, roles, expires_at } = await whoIs(jar)
    assert.deepEqual([status, name, roles], [200, 'ada@example.com (ada)', ['admin']])
    const hours = (Date.parse(expires_at ?? '') - Date.now()) / 3_600_000
    assert.ok(hours > 7.9 && hours <= 8)
    const cookie = jar.set.find((line) => line.startsWith('gateway_session=')) ?? ''
    for (const member of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=28800'])
      assert.ok(cookie.includes(member), cookie)
    assert.deepEqual((await whoIs(await signedIn('vic'))).roles, ['viewer'])
    assert.deepEqual((await whoIs(await signedIn('both'))).roles, ['support', 'finance'])
  })

  it('is the role at each request, and the name in the change log', async () => {
    const create = (jar: BrowserJar, id: string) =>
      fetch(`${gateway.url}/admin/accounts`, {
        method: 'POST',
        headers: {
          ...OWN_PAGE,
          cookie: `gateway_session=${sessionCookie(jar)}`,
          'content-type': 'application/json',
          'x-admin-actor': 'Mallory',
        },
        body: JSON.stringify({ id }),
      })
    assert.equal((await create(await signedIn('vic'), 'by-vic')).status, 403)
    const ada = await signedIn('ada')
    assert.equal((await create(ada, 'by-ada')).status, 201)
    const response = await ada.get(`${gateway.url}/admin/changes?limit=1`, OWN_PAGE)
    const { data } = (await response.json()) as { data: { actor: string; subject: string }[] }
    assert.deepEqual([data[0]?.actor, data[0]?.subject], ['ada@example.com (ada)', 'by-ada'])
  })

  for (const person of ['nobody', 'stranger']) {
    it(`lets no person in without a role: ${person}`, async () => {
      provider.person = person
      const jar = new BrowserJar()
      const end = await jar.follow(`${gateway.url}/console/sign-in`)
      assert.equal(end, `${gateway.url}/console?refused=no_role`)
      noSession(jar)
    })
  }

  it('ends for good at the sign-out, and when an administrator ends the session', async () => {
    const [ada, vic] = [await signedIn('ada'), await signedIn('vic')]
    const stolen = sessionCookie(vic)
    const signOut = await vic.get(`${gateway.url}/admin/session`, OWN_PAGE, 'DELETE')
    assert.equal(signOut.status, 200)
    noSession(vic)
    const again = await fetch(`${gateway.url}/admin/session`, {
      headers: { ...OWN_PAGE, cookie: `gateway_session=${stolen}` },
    })
    assert.equal(again.status, 401)
    const other = await signedIn('vic')
    const list = await ada.get(`${gateway.url}/admin/sessions?limit=100`, OWN_PAGE)
    const { data } = (await list.json()) as { data: { id: string; name: string }[] }
    for (const { id } of data.filter(({ name }) => name.startsWith('vic')))
      assert.equal((await ada.get(`${gateway.url}/admin/sessions/${id}`, OWN_PAGE, 'DELETE')).status, 200)
    assert.equal((await whoIs(other)).status, 401)
    assert.equal((await whoIs(ada)).status, 200)
  })

  it('counts for requests of the own page only', async () => {
    const jar = await signedIn('ada')
    const foreign: readonly Record<string, string>[] = [
      {},
      { 'sec-fetch-site': 'same-origin' },
      { 'x-gateway-console': '1', 'sec-fetch-site': 'cross-site' },
      { 'x-gateway-console': '1', 'sec-fetch-site': 'same-site' },
      { 'x-gateway-console': '1', 'sec-fetch-site': 'none' },
    ]
    for (const headers of foreign) assert.equal((await whoIs(jar, headers)).status, 401)
    const { host } = new URL(gateway.url)
    for (const [origin, status] of [
      [undefined, 401],
      ['null', 401],
      ['http://evil.example', 401],
      [`http://evil.example/${host}`, 401],
      [`http://${host}.evil.example`, 401],
      [gateway.url, 200],
    ] as const) {
      const headers = { 'x-gateway-console': '1', ...(origin !== undefined && { origin }) }
      const response = await fetch(`${gateway.url}/admin/accounts`, {
        method: 'POST',
        headers: {
          ...headers,
          cookie: `gateway_session=${sessionCookie(jar)}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ id: `from-${Math.random()}` }),
      })
      assert.equal(response.status, status === 200 ? 201 : status, origin)
    }
  })

  describe('refuses', () => {
    const refused = async (jar: BrowserJar, callback: string) => {
      const end = await jar.follow(callback)
      assert.equal(end, `${gateway.url}/console?refused=failed`)
      noSession(jar)
    }

    it('the callback of another browser: a stolen code and state open nothing', async () => {
      const callback = await callbackFor(new BrowserJar())
      const victim = new BrowserJar()
      await callbackFor(victim)
      const asked = provider.asked.length
      for (const jar of [new BrowserJar(), victim]) await refused(jar, callback)
      assert.equal(provider.asked.length, asked, 'the provider was not asked')
    })

    it('a code that was used already', async () => {
      const jar = new BrowserJar()
      const callback = await callbackFor(jar)
      const cookies = new Map(jar.cookies)
      assert.equal(await jar.follow(callback), `${gateway.url}/console`)
      const thief = new BrowserJar()
      for (const [name, value] of cookies) thief.cookies.set(name, value)
      await refused(thief, callback)
    })

    it('another state, another issuer, no code, and an error of the provider', async () => {
      for (const alter of [
        (url: URL) => url.searchParams.set('state', 'x'),
        (url: URL) => url.searchParams.delete('state'),
        (url: URL) => url.searchParams.set('iss', 'http://localhost:1'),
        (url: URL) => url.searchParams.delete('code'),
        (url: URL) => url.searchParams.set('code', 'guessed'),
        (url: URL) => url.searchParams.append('code', 'twice'),
        (url: URL) => url.searchParams.set('error', 'access_denied'),
      ]) {
        const jar = new BrowserJar()
        const callback = new URL(await callbackFor(jar))
        alter(callback)
        await refused(jar, callback.href)
      }
    })

    it('to come back to another address than the one that the provider knows', async () => {
      const { host } = new URL(gateway.url)
      const { request } = await import('node:http')
      const location = await new Promise<string>((resolve, reject) => {
        request(`${gateway.url}/console/sign-in?redirect_uri=http://evil.example`, {
          headers: { host: 'evil.example' },
        })
          .on('response', (res) => resolve(res.resume().headers.location ?? ''))
          .on('error', reject)
          .end()
      })
      const asked = new URL(location)
      assert.equal(asked.searchParams.get('redirect_uri'), 'http://evil.example/console/sign-in/callback')
      const answer = await fetch(asked, { redirect: 'manual' })
      assert.equal(answer.status, 400)
      assert.equal(answer.headers.get('location'), null)
      const jar = new BrowserJar()
      const callback = new URL(await callbackFor(jar))
      callback.searchParams.set('return_to', 'http://evil.example')
      assert.equal(new URL(await jar.follow(callback.href)).host, host)
    })
  })
})
