import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GATEWAY_COMMAND, runProgram } from '../../support/gateway-process.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
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
    await says(server, '"msg":"config not reloaded, all stays as it is"')
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

  for (const workers of [{}, { WORKERS: '1' }])
    it(`among several regions changes nothing; one of another region leaves its accounts there: ${JSON.stringify(workers)}`, {
      skip: WITHOUT_POSTGRES,
    }, async (t) => {
      const postgres = await startPostgres()
      t.after(() => postgres.close())
      const url = await postgres.createDatabase()
      const ours = { id: 'demo', balance: '1000', home: 'eu' }
      const server = await startFileGateway(
        t,
        { DATABASE_URL: url, REGION_DATABASES: `eu=${url}`, ...workers },
        { region: 'eu', accounts: [ours], authority: 'config' },
      )
      const { config } = server
      const models = [...config.models, { id: 'new', kind: 'chat' }]
      const lines = config.lines.map((line) => ({ ...line, models: { 'chat-small': 'u', new: 'u' } }))
      await server.write({ ...config, models, lines, accounts: [ours, { id: 'homeless', balance: '5' }] })
      await says(server, '"fault":"accounts[1].home: is needed where there are several regions"')
      assert.equal(await asked(server, 'new'), 404)

      const theirs = { id: 'theirs', balance: '5', home: 'us' }
      await server.write({ ...config, models, lines, region: 'us', accounts: [ours, theirs] })
      await says(server, '"msg":"config reloaded"')
      assert.match(
        server.gateway.stdout,
        /"members":\["region"\],"msg":"changed in the config, but only a restart/,
      )
      assert.equal(await asked(server, 'new'), 200)
      if ('WORKERS' in workers) {
        server.gateway.kill('SIGUSR2')
        await says(server, '"msg":"workers restarted"')
        assert.equal(await asked(server, 'new'), 200)
      }
      const { data } = await server.admin<{ data: readonly { id: string; status: string }[] }>('/accounts')
      assert.deepEqual(
        data.map(({ id, status }) => `${id} ${status}`),
        ['demo active'],
      )
    })
})
