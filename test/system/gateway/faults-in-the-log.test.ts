import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { freePort } from '../../support/free-port.ts'
import {
  chat,
  type GatewayProcess,
  type LogLine,
  post,
  runToExit,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type Certified, type OwnAuthority, ownAuthority } from '../../support/own-authority.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { fillDisk, mayMount, smallDisk } from '../../support/small-disk.ts'
import { until, untilAsync } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'

const PAGE = readFileSync('docs/troubleshooting.md', 'utf8')
const WITHOUT_MOUNT = mayMount() ? false : 'this user may not mount a disk'
const CLOCK = resolve('test/system/chaos/set-clock.ts')

/** Waits for a line of the log that the page names. */
async function logs(gateway: GatewayProcess, msg: RegExp, fits = (_line: LogLine) => true) {
  let found: LogLine | undefined
  await until(() => {
    found = gateway.logged.find((line) => msg.test(line.msg) && fits(line))
    return found !== undefined
  }, `${msg} in the log`)
  return found as LogLine
}

/** Fails unless the section of the page on faults has each of these words. */
function assertNamed(...words: readonly string[]): void {
  const section = PAGE.slice(PAGE.indexOf('\n## Faults and their signs'))
  for (const word of words) assert.ok(section.includes(word), `the page does not name ${word}`)
}

const line = (baseUrl: string, more: object = {}) => ({
  id: 'one',
  provider: 'p',
  protocol: 'openai',
  baseUrl,
  models: { 'chat-small': 'u' },
  ...more,
})

const isUp = (availability: string, text: string): boolean =>
  text.includes(
    `model_gateway_line_availability{model_gateway_line="one",model_gateway_availability="${availability}"} 1`,
  )

/** Calls a line until it is down; returns its gateway and the reason in the log. */
async function downLine(
  t: TestContext,
  lineOf: (authority: OwnAuthority) => Promise<object>,
): Promise<FileGateway & { readonly reason: string }> {
  const lines = [await lineOf(ownAuthority(t))]
  const server = await startFileGateway(t, {}, { lines })
  const { gateway } = server
  for (let calls = 0; calls < 6; calls++) await (await post(gateway.url, chat())).arrayBuffer()
  const down = await logs(gateway, /^a line is down/)
  assert.deepEqual([down.level, down.line], [50, 'one'])
  const metrics = async () => (await fetch(`${gateway.url}/metrics`)).text()
  await untilAsync(async () => isUp('down', await metrics()), 'the metric')
  return { ...server, reason: `${down.reason}` }
}

/** Starts an HTTPS server, which answers nothing of use. */
async function startSecure(t: TestContext, { cert, key }: { cert: string; key: string }): Promise<string> {
  const server = createServer({ cert, key }, (_req, res) => res.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

/** A certificate of a server at 127.0.0.1, and others that must not be trusted, with the words for each. */
function certificates(t: TestContext) {
  const { certify, caFile } = ownAuthority(t)
  const here = ['127.0.0.1']
  const bad = [
    { certificate: certify('expired', here, -1), says: 'certificate has expired' },
    {
      certificate: ownAuthority(t).certify('of-a-stranger', here),
      says: 'unable to verify the first certificate',
    },
    {
      certificate: certify('elsewhere', ['database.internal']),
      says: "does not match certificate's altnames",
    },
  ]
  return { good: certify('server', here), bad, caFile }
}

/** Returns the URL of a Postgres whose certificate is verified. */
function verified({ url }: PostgresServer, caFile: string): string {
  return `${url}?sslmode=verify-full&sslrootcert=${caFile}`
}

/** Restarts a Postgres with another certificate. */
async function showing(postgres: PostgresServer, certificate: Certified): Promise<void> {
  await postgres.stop()
  postgres.certify(certificate)
  await postgres.start()
}

describe('a fault is found in the log, and the page on troubleshooting names the line', {
  concurrency: 2,
}, () => {
  it('the key at a provider was rotated', async (t) => {
    const error = { type: 'invalid_request_error', code: 'invalid_api_key', message: 'no' }
    const upstream = await startUpstream((res, { headers }) => {
      if (headers.authorization === 'Bearer sk-new') chatAnswer(res)
      else answerJson(res, 401, { error })
    })
    t.after(() => upstream.close())
    const lineWith = (apiKey: string) => line(`${upstream.url}/v1`, { apiKey })
    const { reason, gateway, config, write } = await downLine(t, async () => lineWith('sk-former'))
    assert.equal(reason, 'invalid_request_error: invalid_api_key')
    await write({ ...config, lines: [lineWith('sk-new')] })
    await logs(gateway, /^a line is no longer down/)
    assert.equal((await post(gateway.url, chat())).status, 200)
    assertNamed('a line is down', 'invalid_api_key')
  })

  it('the certificate of a provider is signed by no authority that the gateway trusts', async (t) => {
    const { reason } = await downLine(t, async ({ certify }) =>
      line(await startSecure(t, certify('provider', ['127.0.0.1']))),
    )
    assert.equal(reason, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')
    assertNamed('UNABLE_TO_VERIFY_LEAF_SIGNATURE')
  })

  it('the certificate of a provider has expired', async (t) => {
    const { reason } = await downLine(t, async ({ certify, caFile }) => {
      const expired = certify('provider', ['127.0.0.1'], -1)
      return line(await startSecure(t, expired), { tls: { ca: `file:${caFile}` } })
    })
    assert.equal(reason, 'CERT_HAS_EXPIRED')
    assertNamed('CERT_HAS_EXPIRED')
  })

  it('the name of a provider does not resolve', async (t) => {
    const { reason } = await downLine(t, async () => line('http://provider.invalid/v1'))
    assert.match(reason, /^(ENOTFOUND|EAI_AGAIN): getaddrinfo$/)
    assertNamed('ENOTFOUND')
  })

  it('a changed config has faults, or a secret of it is gone', async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const secret = join(folder.path, 'key')
    await writeFile(secret, 'sk-of-the-provider')
    const server = await startFileGateway(t)
    const { gateway, config, upstream } = server
    await server.write({ ...config, models: [{ id: 'chat-small', kind: 'chta' }] })
    const refused = /^config not reloaded; the running config stays in effect$/
    await logs(gateway, refused, ({ fault }) => /^models\[0\]\.kind: /.test(`${fault}`))
    await server.write({ ...config, lines: [line(`${upstream.url}/v1`, { apiKey: `file:${secret}` })] })
    await logs(gateway, /^config reloaded$/)
    await rm(secret)
    await logs(gateway, refused, ({ fault }) => /^lines\[0\]\.apiKey: .*key/.test(`${fault}`))
    await server.write({ ...config, lines: [line(`${upstream.url}/v1`, { apiKey: 'env:OF_NOBODY' })] })
    await logs(gateway, refused, ({ fault }) => /^lines\[0\]\.apiKey: .*OF_NOBODY/.test(`${fault}`))
    assert.equal((await post(gateway.url, chat())).status, 200)
    assertNamed('config not reloaded')
  })

  it('the file of the ADMIN_TOKEN is gone', async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const file = join(folder.path, 'token')
    await writeFile(file, 'admin-token-of-the-tests')
    const { gateway, admin } = await startFileGateway(t, { ADMIN_TOKEN: `file:${file}` })
    await rm(file)
    // It is read again when an operator uses it, once a second.
    const hasAsked = async () => {
      await admin('/lines')
      return gateway.logged.some(
        ({ msg }) => msg === 'a secret cannot be used; the previous value stays in effect',
      )
    }
    await untilAsync(hasAsked, 'the line')
    await logs(gateway, /^a secret cannot be used; the previous value stays in effect$/, ({ fault }) =>
      /^ADMIN_TOKEN: /.test(`${fault}`),
    )
    assertNamed('a secret cannot be used; the previous value stays in effect')
  })

  it('the disk of SQLite is full', { skip: WITHOUT_MOUNT }, async (t) => {
    const disk = await smallDisk(t)
    const { gateway } = await startFileGateway(t, { DATABASE_URL: `sqlite:${join(disk, 'gateway.db')}` })
    assert.equal((await post(gateway.url, chat())).status, 200)
    fillDisk(disk)
    const isRefused = async () => (await post(gateway.url, chat())).status === 503
    await untilAsync(isRefused, 'the refusal')
    const { store, err } = await logs(gateway, /^store is away$/)
    assert.equal(store, 'database')
    assert.match((err as Error).message, /database or disk is full/)
    const readiness = async () =>
      (await (await fetch(`${gateway.url}/readyz`)).json()) as Record<string, string>
    await untilAsync(async () => (await readiness()).status === 'unavailable', 'the readiness to end')
    assert.equal((await readiness()).reason, 'ledger')
    assertNamed('database or disk is full')
  })

  it('the disk of SQLite is read-only', { skip: WITHOUT_MOUNT }, async (t) => {
    const disk = await smallDisk(t, ['ro'])
    const { code, stderr } = await runToExit({ DATABASE_URL: `sqlite:${join(disk, 'gateway.db')}` })
    assert.equal(code, 1)
    assert.match(stderr, /^DATABASE_URL: the database cannot be opened \(.*\)\n$/)
    assertNamed('the database cannot be opened')
  })

  it('the machine is out of memory, and the system kills a worker', async (t) => {
    const { gateway } = await startFileGateway(t, { WORKERS: '1' })
    const { pid } = await logs(gateway, /^database opened$/)
    process.kill(Number(pid), 'SIGKILL')
    const died = await logs(gateway, /^a worker died$/)
    assert.deepEqual([died.level, died.signal], [50, 'SIGKILL'])
    assert.match(`${died.hint}`, /short of memory/)
    assertNamed('a worker died', 'SIGKILL')
  })

  it('the clock of the machine jumps', async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const CLOCK_FILE = join(folder.path, 'clock')
    await writeFile(CLOCK_FILE, '0')
    const { gateway } = await startFileGateway(t, { CLOCK_FILE, NODE_OPTIONS: `--import=${CLOCK}` })
    await writeFile(CLOCK_FILE, '3600000')
    const { byMs } = await logs(gateway, /^the clock of this machine was set/)
    assert.ok(Math.abs(Number(byMs) - 3_600_000) < 60_000, `${byMs}`)
    assertNamed('the clock of this machine was set')
  })

  it('a start finds that the certificate of Postgres cannot be trusted', {
    skip: WITHOUT_POSTGRES,
  }, async (t) => {
    const { good, bad, caFile } = certificates(t)
    const postgres = await startPostgres({ tls: good })
    t.after(() => postgres.close())
    for (const { certificate, says } of bad) {
      await showing(postgres, certificate)
      const { code, stderr, stdout } = await runToExit({ DATABASE_URL: verified(postgres, caFile) })
      assert.equal(code, 1)
      assert.match(stderr, /^DATABASE_URL: the database cannot be opened \(.*\)\n$/)
      assert.ok(stderr.includes(says), stderr)
      assert.doesNotMatch(stdout, /ready at/)
      assertNamed(says)
    }
  })

  it('the certificate of Postgres can no longer be trusted', { skip: WITHOUT_POSTGRES }, async (t) => {
    const { good, bad, caFile } = certificates(t)
    const postgres = await startPostgres({ tls: good })
    t.after(() => postgres.close())
    const { gateway, ledger } = await startFileGateway(t, { DATABASE_URL: verified(postgres, caFile) })
    const statusOf = async (path: string) => (await fetch(`${gateway.url}${path}`)).status
    const isServed = async () => (await post(gateway.url, chat())).status === 200
    assert.ok(await isServed())
    for (const { certificate, says } of bad) {
      await showing(postgres, certificate)
      await untilAsync(async () => (await statusOf('/readyz')) === 503, 'the readiness to end')
      // Its restart is noticed first.
      const { store } = await logs(gateway, /^store is (still )?away$/, ({ err }) =>
        (err as Error).message.includes(says),
      )
      assert.equal(store, 'database')
      await untilAsync(async () => !(await isServed()), 'the refusal')
      assert.equal(await statusOf('/healthz'), 200)
      const backs = () => gateway.logged.filter(({ msg }) => msg === 'store is back').length
      const before = backs()
      await showing(postgres, good)
      await until(() => backs() > before, 'the line that it is back')
      await untilAsync(isServed, 'calls that are served again')
      await untilAsync(async () => (await statusOf('/readyz')) === 200, 'the readiness to be back')
    }
    assert.deepEqual((await ledger()).violations, [])
    assertNamed('`sslrootcert`')
  })

  it('the certificate of Redis cannot be trusted, from the start or any more', {
    skip: WITHOUT_REDIS,
  }, async (t) => {
    const { good, bad, caFile } = certificates(t)
    const port = await freePort()
    const tls = ['--tls-port', `${port}`, '--tls-cert-file', good.certFile, '--tls-key-file', good.keyFile]
    const redis = await startRedis({ settings: [...tls, '--tls-auth-clients', 'no'] })
    t.after(() => redis.close())
    const REDIS_URL = `rediss://127.0.0.1:${port}`
    const stranger = await startFileGateway(t, { REDIS_URL })
    const { store, reason } = await logs(stranger.gateway, /^store is away$/)
    assert.equal(store, 'redis')
    assert.match(`${reason}`, /certificate/)
    assert.equal((await post(stranger.gateway.url, chat())).status, 200)

    const { gateway } = await startFileGateway(t, { REDIS_URL, NODE_EXTRA_CA_CERTS: caFile })
    const showing = async ({ certFile, keyFile }: Certified) => {
      const operator = redis.client()
      await operator.config('SET', 'tls-cert-file', certFile, 'tls-key-file', keyFile)
      await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    }
    for (const { certificate, says } of bad) {
      await showing(certificate)
      await logs(gateway, /^store is away$/, ({ reason }) => `${reason}`.includes(says))
      // Each process counts limits by itself meanwhile.
      assert.equal((await post(gateway.url, chat())).status, 200)
      assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
      const backs = () => gateway.logged.filter(({ msg }) => msg === 'store is back').length
      const before = backs()
      await showing(good)
      await until(() => backs() > before, 'the line that it is back')
    }
    assertNamed('`reason`', 'NODE_EXTRA_CA_CERTS')
  })
})
