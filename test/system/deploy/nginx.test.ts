import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { jsonOf } from '../../support/answer-bodies.ts'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { freePort } from '../../support/free-port.ts'
import { KEY } from '../../support/gateway.ts'
import { ownAuthority } from '../../support/own-authority.ts'
import { chatAnswer, chatEvents, startUpstream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { ROOT } from '../package/packages.ts'

const PAGE = readFileSync(join(ROOT, 'docs/three-replicas-behind-nginx.md'), 'utf8')
const NAME = 'gateway.example.com'
/** Another address than that of nginx. */
const CALLER = '127.0.0.2'
/** More than nginx takes by default. */
const LARGE = 2 * 1024 * 1024

const WITHOUT_NGINX = spawnSync('nginx', ['-v']).status === 0 ? false : 'there is no nginx here'

describe('the nginx of the page on three replicas', { skip: WITHOUT_NGINX }, () => {
  const cleanUp = cleaningUp()
  const authority = ownAuthority(cleanUp)
  const agent = new Agent({ connect: { ca: authority.ca, servername: NAME }, localAddress: CALLER })
  cleanUp.after(() => agent.close())
  const replicas: AssembledGateway[] = []
  let goOn = () => {}
  let url = ''

  before(async () => {
    const upstream = await startUpstream(async (res, { json }) => {
      if (!json.stream) return chatAnswer(res)
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      const [first = '', ...others] = chatEvents(['one', 'two'])
      res.write(first + others.shift())
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
      res.end(others.join(''))
    })
    cleanUp.after(() => upstream.close())
    for (const _ of [1, 2, 3])
      replicas.push(
        await assembledGateway(cleanUp, {
          trustProxy: '127.0.0.1',
          models: [{ id: 'chat-small', kind: 'chat' }],
          lines: [
            {
              id: 'only',
              provider: 'other',
              protocol: 'openai',
              baseUrl: `${upstream.url}/v1`,
              models: { 'chat-small': 'theirs' },
            },
          ],
        }),
      )
    const port = await freePort()
    url = `https://127.0.0.1:${port}`
    await startNginx(port)
  })

  /** Runs nginx with the lines of the page, on ports of this machine. */
  async function startNginx(port: number) {
    const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
    const { certFile, keyFile } = authority.certify(NAME, [NAME])
    let next = 0
    const site = (/```nginx\n(.*?)```/s.exec(PAGE)?.[1] ?? '')
      .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
      .replace(/\/etc\/nginx\/gateway\.crt/, certFile)
      .replace(/\/etc\/nginx\/gateway\.key/, keyFile)
      .replaceAll(/10\.0\.0\.1\d:8787/g, () => new URL(replicas[next++]?.url ?? '').host)
    assert.equal(next, 3)
    const config = `daemon off; pid ${folder}/pid; error_log stderr; user root;
events {}
http { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
${site} }`
    writeFileSync(join(folder, 'nginx.conf'), config)
    const nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'inherit' })
    const exited = once(nginx, 'exit')
    cleanUp.after(async () => {
      nginx.kill()
      await exited
      rmSync(folder, { recursive: true, force: true })
    })
    await untilAsync(
      () =>
        get('/healthz').then(
          (status) => status === 200,
          () => false,
        ),
      'nginx serves',
    )
  }

  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const get = async (path: string) => (await fetch(url + path, { dispatcher: agent })).status
  const chat = (content = 'Hello!') =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      dispatcher: agent,
      headers,
      body: JSON.stringify({ model: 'chat-small', messages: [{ role: 'user', content }] }),
    })

  test('a stream arrives event by event', async () => {
    const body = JSON.stringify({
      model: 'chat-small',
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    const options = { method: 'POST', headers, ca: authority.ca, servername: NAME }
    const sent = request(`${url}/v1/chat/completions`, options)
    sent.end(body)
    const [answer] = await once(sent, 'response')
    let text = ''
    answer.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    await untilAsync(async () => text.includes('one'), 'the first word arrives while the upstream waits')
    assert.ok(!text.includes('[DONE]'))
    goOn()
    await once(answer, 'end')
    assert.match(text, /two.*\[DONE\]/s)
  })

  test('a large prompt gets through, and callers are known by their own address', async () => {
    const answer = await chat('word '.repeat(LARGE / 5))
    assert.equal(answer.status, 200)
    const id = answer.headers.get('x-request-id')
    let callers: string[] = []
    await untilAsync(async () => {
      const found = await Promise.all(replicas.map(({ send }) => send(`/v1/calls/${id}`)))
      const entries = found
        .filter(({ status }) => status === 200)
        .map((entry) => jsonOf<{ client_ip: string }>(entry))
      callers = (await Promise.all(entries)).map(({ client_ip }) => client_ip)
      return callers.length > 0
    }, 'the call is in the log of its replica')
    assert.deepEqual(callers, [CALLER])
  })

  test('the pages of operators are not reached', async () => {
    for (const path of ['/admin/lines', '/metrics', '/admin']) assert.equal(await get(path), 404, path)
  })

  test('no call fails when a replica ends', async () => {
    await replicas.shift()?.gateway.close()
    const statuses = await Promise.all(Array.from({ length: 12 }, () => chat().then(({ status }) => status)))
    assert.deepEqual(statuses, new Array(12).fill(200))
  })
})
