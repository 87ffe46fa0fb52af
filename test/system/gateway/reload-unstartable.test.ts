import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GATEWAY_COMMAND, runProgram } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'

const says = ({ gateway }: FileGateway, text: string): Promise<void> =>
  until(() => gateway.stdout.includes(text), text, 60_000)

const asked = async ({ gateway }: FileGateway, model = 'chat-small'): Promise<number> => {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  await answer.arrayBuffer()
  return answer.status
}

/** In a process in which this package is not installed. */
const WITHOUT_GOOGLE = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (name !== 'google-auth-library') return next(name, context)
      throw Object.assign(new Error('it is not there'), { code: 'ERR_MODULE_NOT_FOUND' })
    },
  })
`)}`

describe('a changed config with which no gateway could start', () => {
  it('for want of a package changes nothing, and workers can be replaced', async (t) => {
    const server = await startFileGateway(t, { WORKERS: '1', NODE_OPTIONS: WITHOUT_GOOGLE })
    const { config } = server
    const [line] = config.lines
    await server.write({ ...config, lines: [{ ...line, apiKey: { google: {} } }] })
    await says(server, '"msg":"config not reloaded; the running config stays in effect"')
    assert.match(server.gateway.stdout, /lines\[0\]\.apiKey\.google: needs packages that are not installed/)
    const checked = await runProgram([...GATEWAY_COMMAND, '--check'], server.folder, server.env)
    assert.equal(checked.code, 1)
    assert.match(checked.stderr, /^lines\[0\]\.apiKey\.google: needs packages that are not installed/m)
    assert.equal(await asked(server), 200)
    server.gateway.kill('SIGUSR2')
    await says(server, '"msg":"workers restarted"')
    assert.doesNotMatch(server.gateway.stdout, /no new worker became ready/)
    assert.equal(await asked(server), 200)
  })
})
