import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { type Exit, runToExit, temporaryFolder } from '../../support/gateway-process.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
const cleanUp = cleaningUp()
before(async () => {
  folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
})

let files = 0
async function file(text: string): Promise<string> {
  const path = join(folder.path, `${files++}.json`)
  await writeFile(path, text)
  return path
}

const SECRET = 'sk-very-secret-value'

function assertRefusedToStart({ code, stdout, stderr }: Exit, lines: readonly RegExp[]): void {
  assert.equal(code, 1, stderr)
  assert.doesNotMatch(stdout, /ready at/)
  const said = stderr.trimEnd().split('\n')
  assert.equal(said.length, lines.length, stderr)
  for (const [i, line] of lines.entries()) assert.match(said[i] ?? '', line)
  assert.doesNotMatch(stderr, /\n\s+at |node:internal|Error:/, 'no stack, no class name')
  assert.doesNotMatch(stdout + stderr, /very-secret|hunter2/)
}

describe('a gateway that cannot start says why, one line for each fault, and exits with 1', {
  concurrency: 2,
}, () => {
  it('environment', async () => {
    const exit = await runToExit({
      PORT: '99999',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://root:hunter2@db/gateway',
    })
    assertRefusedToStart(exit, [/^PORT: /, /^LOG_LEVEL: /, /^DATABASE_URL: /])
  })

  it('config: every fault with its path', async () => {
    const line = { id: 'l', provider: 'p', protocol: 'openai', models: { m: 'u' }, apiKey: SECRET }
    const config = {
      keys: [{ id: 'k', account: 'nobody', secret: SECRET, enabled: 'yes' }],
      models: [{ id: 'm', kind: 'chat', price: { inputPerMillion: 1 } }],
      lines: [
        { ...line, baseUrl: 'not a url' },
        { ...line, id: 'l2', baseUrl: 'http://127.0.0.1/v1', wieght: 2 },
      ],
    }
    assertRefusedToStart(await runToExit({ GATEWAY_CONFIG: await file(JSON.stringify(config)) }), [
      /^keys\[0\]\.enabled: /,
      /^models\[0\]\.price\.inputPerMillion: /,
      /^lines\[0\]\.baseUrl: /,
      /^lines\[1\]\.wieght: /,
      /^keys\[0\]\.account: there is no account "nobody"/,
    ])
  })

  it('config: an account, a model and an environment variable that are not there', async () => {
    const config = {
      keys: [{ id: 'k', account: 'nobody', secret: SECRET }],
      models: [{ id: 'm', kind: 'chat' }],
      lines: [
        {
          id: 'l',
          provider: 'p',
          protocol: 'openai',
          baseUrl: 'http://127.0.0.1/v1',
          apiKey: 'env:NOT_SET_ANYWHERE',
          models: { ghost: 'u' },
        },
      ],
    }
    const exit = await runToExit({ GATEWAY_CONFIG: await file(JSON.stringify(config)) })
    assert.equal(exit.code, 1)
    assert.match(exit.stderr, /^keys\[0\]\.account: /m)
    assert.match(exit.stderr, /^lines\[0\]\.models/m)
    assert.match(exit.stderr, /^lines\[0\]\.apiKey: .*NOT_SET_ANYWHERE/m)
    assert.doesNotMatch(exit.stderr, /\n\s+at /)
  })

  it('config: no file, no JSON, no object', async () => {
    const missing = join(folder.path, 'missing.json')
    assertRefusedToStart(await runToExit({ GATEWAY_CONFIG: missing }), [/^GATEWAY_CONFIG: .*missing\.json/])
    const broken = await file(`{\n  "keys": [\n    { "secret": "${SECRET}" oops }\n  ]\n}`)
    assertRefusedToStart(await runToExit({ GATEWAY_CONFIG: broken }), [
      /^GATEWAY_CONFIG: .*not valid JSON.*line 3/,
    ])
    const torn = await file(`{ "keys": [{ "secret": "${SECRET}`)
    assertRefusedToStart(await runToExit({ GATEWAY_CONFIG: torn }), [/^GATEWAY_CONFIG: .*not valid JSON/])
    const list = await file('[]')
    assertRefusedToStart(await runToExit({ GATEWAY_CONFIG: list }), [/^GATEWAY_CONFIG: .*object/])
  })

  it('a port that is in use', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    try {
      const exit = await runToExit({ PORT: String(port) })
      assertRefusedToStart(exit, [new RegExp(`^PORT: .*${port}.*in use`)])
    } finally {
      server.close()
    }
  })

  it('an address that is not of this machine', async () => {
    assertRefusedToStart(await runToExit({ HOST: '192.0.2.1' }), [/^HOST: .*192\.0\.2\.1/])
  })

  it('a database that is none', async () => {
    const text = await file('this is a text and no database, however long one makes it '.repeat(40))
    assertRefusedToStart(await runToExit({ DATABASE_URL: `sqlite:${text}` }), [/^DATABASE_URL: .*database/])
    // A file stands where a folder is needed.
    const below = `sqlite:${text}/gateway.db`
    assertRefusedToStart(await runToExit({ DATABASE_URL: below }), [/^DATABASE_URL: /])
  })
})
