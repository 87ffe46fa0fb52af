import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { runProgram } from '../../support/gateway-process.ts'
import { Consumer } from './consumer.ts'

/** Somebody's program: a provider, the gateway, one call through it, and the end. It prints what came of it. */
const program = (serve: string, end: string): string => `import express from 'express'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createGateway } from 'express-model-gateway/gateway'

const provider = createServer((req, res) => {
  req.resume().on('end', () => {
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({
      id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'theirs',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello!' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }))
  })
}).listen(0, '127.0.0.1')
await once(provider, 'listening')

const gateway = await createGateway({
  accounts: [{ id: 'acme', name: 'Acme', limits: { rpm: 10 } }],
  keys: [{ id: 'key_acme', account: 'acme', secret: 'env:CALLER_KEY' }],
  models: [{ id: 'chat-small', kind: 'chat' }],
  lines: [{
    id: 'only', provider: 'other', protocol: 'openai',
    baseUrl: \`http://127.0.0.1:\${provider.address().port}/v1\`, models: { 'chat-small': 'theirs' },
  }],
}, { databaseUrl: 'sqlite:embedded.db', env: { CALLER_KEY: 'sk-caller' }, logger: silent() })

${serve}
await once(server, 'listening')
const answer = await fetch(\`http://127.0.0.1:\${server.address().port}\${prefix}/v1/chat/completions\`, {
  method: 'POST',
  headers: { authorization: 'Bearer sk-caller', 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'chat-small', messages: [{ role: 'user', content: 'Hi' }] }),
})
console.log(answer.status, (await answer.json()).choices?.[0].message.content)
const console_ = await fetch(\`http://127.0.0.1:\${server.address().port}\${prefix}/healthz\`)
console.log(console_.status)
provider.close()
${end}
console.log('closed')

function silent() {
  const none = () => {}
  return { trace: none, debug: none, info: none, warn: none, error: none, fatal: none }
}
`

const PROGRAMS: readonly [what: string, serve: string, end: string][] = [
  [
    'listens itself, and close() ends its servers',
    `const server = gateway.listen(0, '127.0.0.1'), prefix = ''`,
    'await gateway.close()',
  ],
  [
    'is mounted in another app under a path',
    `const app = express(), prefix = '/models'
app.use(prefix, gateway)
const server = app.listen(0, '127.0.0.1').on('upgrade', gateway.upgrade)`,
    'server.close()\nawait gateway.close()',
  ],
]

describe('createGateway, of the installed tarball', () => {
  const cleanUp = cleaningUp()
  const project = new Consumer(['toolkit'])
  cleanUp.after(() => project.remove())

  for (const [what, serve, end] of PROGRAMS)
    test(`${what}; behind close() no handle keeps the process alive`, async () => {
      project.write('program.js', program(serve, end))
      // Nothing in it ends the process: that it ends says that nothing is open.
      const exit = await runProgram([process.execPath, 'program.js'], project.folder)
      assert.deepEqual(exit, { code: 0, signal: null, stdout: '200 Hello!\n200\nclosed\n', stderr: '' })
    })

  test('an option that there is not, and a config with faults, are refused with all of them', async () => {
    project.write(
      'refused.js',
      `import { createGateway } from 'express-model-gateway/gateway'
for (const [config, options] of [[{}, { databaseURL: 'memory:' }], [{}, null], [{ accounts: 1, keys: 2 }, { databaseUrl: 'memory:' }]])
  await createGateway(config, options).then(() => console.log('made'), ({ name, faults }) => console.log(name, faults.length, faults.join(' ')))
`,
    )
    const { code, stdout } = await runProgram([process.execPath, 'refused.js'], project.folder)
    const [option, none, config] = stdout.trim().split('\n')
    assert.equal(code, 0)
    assert.match(
      `${option}`,
      /^ConfigError 1 createGateway: there is no option "databaseURL"; there are databaseUrl,/,
    )
    assert.match(`${none}`, /^ConfigError 1 createGateway: its options must be an object, such as /)
    assert.match(`${config}`, /^ConfigError \d .*accounts.*keys/)
  })
})
