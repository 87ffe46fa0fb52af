import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { chat, post } from '../../support/gateway-process.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { askedChat, keepAliveLoad } from './keep-alive-load.ts'

const ASKED = [askedChat(), askedChat('chat-small', true)]

/** How often it has said this. */
function times({ gateway }: FileGateway, message: string): number {
  return gateway.stdout.split(`"msg":"${message}"`).length - 1
}

function reloaded(server: FileGateway, count: number): Promise<void> {
  return until(() => times(server, 'config reloaded') === count, `reload ${count}`)
}

const ODD = 'the config names models or regions that do not exist'
const NOT_RELOADED = 'config not reloaded; the running config stays in effect'

describe('a changed config file', () => {
  it('takes effect under load: no request fails, new models serve, an unchanged line keeps its circuit', async (t) => {
    const failing = await startUpstream((res) => answerJson(res, 500, {}))
    t.after(() => failing.close())
    const server = await startFileGateway(t)
    const { gateway, config } = server
    const lone = {
      id: 'lone',
      provider: 'p',
      protocol: 'openai',
      baseUrl: `${failing.url}/v1`,
      models: { lone: 'u' },
      circuit: { minimumCalls: 1, resetMs: 86_400_000 },
    }
    const withLone = {
      ...config,
      models: [...config.models, { id: 'lone', kind: 'chat' }],
      lines: [...config.lines, lone],
    }
    const load = keepAliveLoad(t, gateway.url, ASKED)
    await load.more(10)
    assert.equal((await post(gateway.url, chat('lone'))).status, 404)
    await server.write(withLone)
    await reloaded(server, 1)
    assert.equal((await post(gateway.url, chat('lone'))).status, 502)
    assert.equal((await post(gateway.url, chat('lone'))).status, 503)
    assert.equal(failing.requests.length, 1)

    for (let round = 0; round < 10; round++) {
      const weight = round + 1
      await server.write({ ...withLone, lines: [...config.lines, { ...lone, weight }] })
      await reloaded(server, round + 2)
      await load.more(10)
      assert.equal((await post(gateway.url, chat('lone'))).status, 503)
    }
    assert.equal(failing.requests.length, 1, 'the circuit stayed open')

    failing.script = (res) => chatAnswer(res)
    await server.write({ ...withLone, lines: [...config.lines, { ...lone, apiKey: 'another' }] })
    await reloaded(server, 12)
    assert.equal((await post(gateway.url, chat('lone'))).status, 200, 'another key, another circuit')
    await server.write(config)
    await reloaded(server, 13)
    assert.equal((await post(gateway.url, chat('lone'))).status, 404)
    await until(() => failing.connections.size === 0, 'the end of its connections')
    await load.more(10)
    await load.stop()
    assert.deepEqual(load.failures, [])
    assert.deepEqual((await server.ledger()).violations, [])
  })

  it('that is broken changes nothing, and each fault is logged once; no request fails meanwhile', async (t) => {
    const server = await startFileGateway(t)
    const { gateway, config } = server
    const load = keepAliveLoad(t, gateway.url, ASKED)
    await load.more(10)
    await server.write({ ...config, lines: [{ ...config.lines[0], baseUrl: 'no', weight: 'heavy' }] })
    await until(() => times(server, NOT_RELOADED) === 2, 'the faults')
    const faults = gateway.logged.filter(({ msg }) => msg === NOT_RELOADED).map(({ fault }) => fault)
    assert.match(String(faults[0]), /^lines\[0\]\.baseUrl: /)
    assert.match(String(faults[1]), /^lines\[0\]\.weight: /)
    await server.write('{ "models": [')
    await until(() => times(server, NOT_RELOADED) === 3, 'the fault')
    gateway.kill('SIGHUP')
    await until(() => times(server, NOT_RELOADED) === 4, 'the fault again, since somebody asks')
    await load.more(20)
    await load.stop()
    assert.deepEqual(load.failures, [])
    assert.equal(times(server, 'config reloaded'), 0)
    gateway.kill('SIGTERM')
    assert.equal((await gateway.exited).stderr, '')
  })

  it('is read again on SIGHUP, and when it is written in place, but not for nothing', async (t) => {
    const server = await startFileGateway(t)
    const { gateway, config, folder } = server
    const file = join(folder, 'gateway.json')
    await writeFile(join(folder, 'something-else'), 'x')
    await writeFile(file, JSON.stringify(config, null, 2))
    await writeFile(file, JSON.stringify({ ...config, routing: { maxAttempts: 2 } }))
    await reloaded(server, 1)
    gateway.kill('SIGHUP')
    await reloaded(server, 2)
    await writeFile(file, JSON.stringify({ ...config, routing: { maxAttempts: 1 } }))
    await reloaded(server, 3)
  })

  it('brings new accounts and keys, each once, and says what only a restart takes over', async (t) => {
    const server = await startFileGateway(t)
    const { gateway, config } = server
    await server.write({
      ...config,
      accounts: [...(config.accounts as object[]), { id: 'second', balance: '3.00' }],
      keys: [...(config.keys as object[]), { id: 'second', account: 'second', secret: 'sk-second' }],
      trustProxy: true,
      bodyLimitBytes: 2048,
    })
    await reloaded(server, 1)
    const answer = await post(gateway.url, chat(), { authorization: 'Bearer sk-second' })
    assert.equal(answer.status, 200)
    gateway.kill('SIGHUP')
    await reloaded(server, 2)
    const account = await server.admin('/accounts/second')
    assert.equal(account.deposited, '3')
    const told = gateway.logged.find(({ members }) => members)
    assert.deepEqual(told?.members, ['bodyLimitBytes', 'trustProxy'])
  })

  it('leaves calls that have begun on what they began with', async (t) => {
    const server = await startFileGateway(t)
    const { gateway, config, upstream } = server
    const answer = upstream.script
    const go = Promise.withResolvers<void>()
    upstream.script = async (...received) => {
      await go.promise
      await answer(...received)
    }
    const running = post(gateway.url, chat('chat-small', 'Hi', { stream: true }))
    await until(() => upstream.requests.length === 1, 'the request')
    await server.write({
      ...config,
      models: [{ id: 'other', kind: 'chat' }],
      lines: [{ ...config.lines[0], id: 'two', models: { other: 'u' } }],
    })
    await reloaded(server, 1)
    assert.equal((await post(gateway.url, chat())).status, 404)
    go.resolve()
    assert.match(await (await running).text(), /\[DONE\]\s*$/)
  })
})

describe('SIGHUP', () => {
  it('ends no gateway with a config file, and SIGUSR2 none without workers', async (t) => {
    const server = await startFileGateway(t)
    server.gateway.kill('SIGUSR2')
    await until(() => server.gateway.stdout.includes('set WORKERS to have workers'), 'the hint')
    assert.equal((await post(server.gateway.url, chat())).status, 200)
  })

  it('loads in workers the secrets that the primary process has resolved, whatever they read like', async (t) => {
    const env = { WORKERS: '1', SIGNING: 'env:what-no-variable-names' }
    const server = await startFileGateway(t, env, { urlSigningSecret: 'env:SIGNING' })
    server.gateway.kill('SIGHUP')
    await reloaded(server, 1)
    assert.equal((await post(server.gateway.url, chat())).status, 200)
    assert.equal(times(server, NOT_RELOADED), 0)
  })

  it('logs once what is odd in the config, also when no worker of the start is left', async (t) => {
    const odd = { id: 'key', account: 'demo', secret: 'sk-demo', allowModels: ['chat-small', 'nowhere'] }
    const server = await startFileGateway(t, { WORKERS: '2' }, { keys: [odd] })
    const { gateway, admin, upstream } = server
    const workers = async () => (await admin<{ workers: { worker: number }[] }>('/lines/one')).workers
    await untilAsync(async () => (await workers()).length === 2, 'both workers')
    // Calls keep the old workers, so that the new ones have other numbers.
    const answer = upstream.script
    const go = Promise.withResolvers<void>()
    upstream.script = async (...received) => {
      await go.promise
      await answer(...received)
    }
    t.after(() => go.resolve())
    const calls = Array.from({ length: 12 }, () => post(gateway.url, chat()))
    await until(() => upstream.requests.length === 12, 'the requests')
    const odds = () => [times(server, ODD), times(server, 'config and database differ')]
    assert.deepEqual(odds(), [1, 0])
    gateway.kill('SIGUSR2')
    await until(() => times(server, 'workers restarted') === 1, 'the roll', 60_000)
    // On a busy machine one of the old workers may have got all calls.
    assert.ok((await workers()).length > 2, 'old workers are there still')
    gateway.kill('SIGHUP')
    await until(() => odds()[0] === 2, 'the warning while old workers end')
    go.resolve()
    for (const call of calls) assert.equal((await call).status, 200)
    await untilAsync(async () => (await workers()).every(({ worker }) => worker > 2), 'the end of the old')
    await server.write({ ...server.config, keys: [{ ...odd, limits: { rpm: 9 } }] })
    await until(() => times(server, 'config reloaded') === 2, 'the reload')
    await until(() => odds().join() === '3,1', 'the warnings')
  })
})
