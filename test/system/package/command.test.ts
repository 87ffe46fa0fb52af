import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, type GatewayProcess, post, startProgram } from '../../support/gateway-process.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { CALLER_KEY, writeConfig } from './config-project.ts'
import { Consumer } from './consumer.ts'
import { manifestOf, PATH } from './packages.ts'

const COMMAND = 'express-model-gateway'

describe('the command of the toolkit, installed alone', () => {
  const cleanUp = cleaningUp()
  const project = new Consumer()
  cleanUp.after(() => project.remove())

  test('runs the demo: the request that it prints is answered, and there is no /metrics', async (t) => {
    const gateway = await project.start(COMMAND)
    t.after(() => gateway.stop())
    const answer = await post(gateway.url, chat())
    assert.equal(answer.status, 200)
    assert.ok((await jsonOf<{ choices: object[] }>(answer)).choices.length === 1)
    assert.equal((await fetch(`${gateway.url}/metrics`)).status, 404)
    assert.match(JSON.stringify(gateway.logged), /there is no \/metrics.*express-model-gateway-server/)
    await endsWell(gateway)
    assert.match(gateway.stdout, /It uses the demo config/)
  })

  test('serves the console with all its scripts and styles', async (t) => {
    const gateway = await project.start(COMMAND)
    t.after(() => gateway.stop())

    const types = await loadAll(`${gateway.url}/console`)
    assert.ok(types.get('text/javascript')! > 40, `${types.get('text/javascript')} scripts`)
    assert.ok(types.get('text/css')! > 0)
    assert.equal(types.get('text/html'), 1)
  })

  test('serves with several workers', async (t) => {
    const gateway = await project.start(COMMAND, [], { WORKERS: '2', DATABASE_URL: 'sqlite:workers.db' })
    t.after(() => gateway.stop())

    assert.equal((await post(gateway.url, chat())).status, 200)
    await endsWell(gateway)
  })

  test('reads a config in YAML and the .env beside it, from any folder', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const elsewhere = mkdtempSync(join(tmpdir(), 'elsewhere-'))
    t.after(() => rmSync(elsewhere, { recursive: true, force: true }))
    const args = ['--config', writeConfig(project, upstream.url)]
    const gateway = await startProgram([project.command(COMMAND), ...args], elsewhere, { PATH })
    t.after(() => gateway.stop())

    const answer = await post(gateway.url, chat(), { authorization: `Bearer ${CALLER_KEY}` })
    assert.equal(answer.status, 200)
    assert.equal(upstream.requests[0]?.headers.authorization, 'Bearer sk-of-the-provider')
    assert.equal(upstream.requests[0]?.json.model, 'model-of-the-provider')
    const admin = { headers: { authorization: 'Bearer from-the-env-file' } }
    assert.equal((await fetch(`${gateway.url}/admin/lines`, admin)).status, 200)
    await endsWell(gateway)
  })

  test('a variable that is set already wins over the .env', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const args = ['--config', writeConfig(project, upstream.url)]
    const gateway = await project.start(COMMAND, args, { UPSTREAM_KEY: 'sk-set-before' })
    t.after(() => gateway.stop())

    await post(gateway.url, chat(), { authorization: `Bearer ${CALLER_KEY}` })
    assert.equal(upstream.requests[0]?.headers.authorization, 'Bearer sk-set-before')
  })

  test('--check names all faults of the config and of the environment at once, and starts nothing', async () => {
    project.write(
      'faulty.yaml',
      `accounts: [{ id: acme, name: Acme }]
keys: [{ id: key_acme, account: nobody, secret: sk-1 }]
models: [{ id: chat-small, kind: chat, contextWindow: many }]
lines: [{ id: only, provider: other, protocol: openai, baseUrl: 'http://127.0.0.1:1/v1', models: { chat-large: x } }]
`,
    )
    const args = ['--config', 'faulty.yaml', '--check']
    const exit = await project.run(COMMAND, args, { PORT: 'many', LOG_LEVEL: 'loud' })

    assert.deepEqual([exit.code, exit.stdout], [1, ''])
    const faults = exit.stderr.trim().split('\n')
    for (const path of [
      'PORT: ',
      'LOG_LEVEL: ',
      'keys[0].account: ',
      'models[0].contextWindow: ',
      'lines[0].models.chat-large',
    ])
      assert.equal(faults.filter((fault) => fault.startsWith(path)).length, 1, `${path} in\n${exit.stderr}`)
    assert.equal(faults.length, 5)
  })

  test('--check says that a config is valid', async () => {
    const file = writeConfig(project, 'http://127.0.0.1:1')
    const exit = await project.run(COMMAND, ['--check', '--config', file])
    assert.deepEqual(exit, { code: 0, signal: null, stdout: `${file} is valid\n`, stderr: '' })
  })

  test('--schema prints the JSON Schema of the config', async () => {
    const { code, stdout } = await project.run(COMMAND, ['--schema'])
    assert.equal(code, 0)
    const { properties } = JSON.parse(stdout) as { properties: object }
    for (const member of ['accounts', 'keys', 'models', 'lines', 'routing']) assert.ok(member in properties)
  })

  test('--version prints the version of the package', async () => {
    const { code, stdout } = await project.run(COMMAND, ['--version'])
    assert.deepEqual([code, stdout], [0, `${manifestOf('toolkit').version}\n`])
  })

  test('--help names every option', async () => {
    const { code, stdout } = await project.run(COMMAND, ['--help'])
    assert.equal(code, 0)
    for (const option of ['--config', '--check', '--schema', '--version', '--help'])
      assert.ok(stdout.includes(`  ${option}`), option)
  })

  test('convert prints the config of another gateway as one of this', async () => {
    project.write(
      'litellm.yaml',
      'model_list: [{ model_name: chat, litellm_params: { model: openai/x, api_key: k } }]',
    )
    const { code, stdout } = await project.run(COMMAND, ['convert', 'litellm', 'litellm.yaml'])
    assert.equal(code, 0)
    project.write('converted.yaml', stdout)
    const check = await project.run(COMMAND, ['--check', '--config', 'converted.yaml'])
    assert.deepEqual([check.code, check.stderr], [0, ''])
  })

  const REFUSED: readonly [what: string, args: string[], env: Record<string, string>, line: RegExp][] = [
    ['an unknown option', ['--chekc'], {}, /'--chekc'.*express-model-gateway --help/],
    ['an argument without an option', ['gateway.yaml'], {}, /'gateway\.yaml'.*express-model-gateway --help/],
    ['an option without its value', ['--config'], {}, /--config.*express-model-gateway --help/],
    [
      'a config that is not there',
      ['--config', 'none.yaml'],
      {},
      /^--config: none\.yaml cannot be read \(ENOENT\)/,
    ],
    [
      'a Redis without its client',
      [],
      { REDIS_URL: 'redis://127.0.0.1:1' },
      /^REDIS_URL: .*ioredis.*express-model-gateway-server/,
    ],
    [
      'a Postgres without its client',
      [],
      { DATABASE_URL: 'postgres://127.0.0.1:1/gateway' },
      /^DATABASE_URL: .*npm install pg.*express-model-gateway-server/,
    ],
    [
      'a collector without the SDK',
      [],
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
      /^OTEL_EXPORTER_OTLP_ENDPOINT: .*@opentelemetry\/sdk-metrics.*express-model-gateway-server/,
    ],
  ]
  for (const [what, args, env, line] of REFUSED)
    test(`${what} is one line, and exit code 1`, async () => {
      const { code, stdout, stderr } = await project.run(COMMAND, args, { LOG_LEVEL: 'silent', ...env })
      assert.equal(code, 1)
      assert.match(stderr, line)
      assert.equal(stderr.trim().split('\n').length, 1, stderr)
      assert.doesNotMatch(stdout, /ready at/)
    })

  test('a Node that is too old gets one line', async () => {
    // The program reads the version as any other does; here it reads 20.
    const older = `const { versions } = process
      Object.defineProperty(process, 'versions', { value: { ...versions, node: '20.19.0' } })
      ;(await import('node:module')).syncBuiltinESMExports()`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(older)}`
    const exit = await project.run(COMMAND, [], { NODE_OPTIONS })
    const stderr = 'express-model-gateway needs Node 22.19 or later; this is Node 20.19.0\n'
    assert.deepEqual(exit, { code: 1, signal: null, stdout: '', stderr })
  })
})

async function endsWell(gateway: GatewayProcess): Promise<void> {
  gateway.kill('SIGTERM')
  const { code, stderr } = await gateway.exited
  assert.deepEqual([code, stderr], [0, ''])
}

/** Loads a page as a browser does, with what its files refer to; returns how many files of each type there were. */
async function loadAll(page: string): Promise<Map<string, number>> {
  const types = new Map<string, number>()
  const seen = new Set<string>()
  const waiting = [page]
  for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
    if (seen.has(url)) continue
    seen.add(url)
    const answer = await fetch(url)
    const text = await answer.text()
    assert.equal(answer.status, 200, url)
    const type = `${answer.headers.get('content-type')}`.split(';')[0] as string
    types.set(type, (types.get(type) ?? 0) + 1)
    const references = text.matchAll(
      type === 'text/html' ? /(?:src|href)="([^"#]+)"/g : /from ["'](\.[^"']+)["']/g,
    )
    if (type === 'text/html' || type === 'text/javascript')
      for (const [, reference = ''] of references) waiting.push(new URL(reference, url).href)
  }
  return types
}
