import { describe } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { type RawServer, startRawServer } from '../../support/raw-server.ts'
import { closedPort, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

describe('the connection to a line', async () => {
  const closed = await closedPort()
  const cleanUp = cleaningUp()
  const silent: RawServer = await startRawServer()
  cleanUp.after(() => silent.close())
  const plain: ScriptedUpstream = await startUpstream()
  cleanUp.after(() => plain.close())
  const broken = { code: 'upstream_error', failsOver: true, blames: true } as const

  testOutcomes('a line that cannot be reached', [
    { does: 'refuses the connection', line: { baseUrl: `http://127.0.0.1:${closed}/v1` }, ...broken },
    // Two dots in a row: the resolver refuses the name itself, without asking anybody.
    { does: 'has a name that does not resolve', line: { baseUrl: 'http://no..such.host/v1' }, ...broken },
    {
      does: 'does not speak TLS on a TLS line',
      line: { baseUrl: `${plain.url.replace('http', 'https')}/v1` },
      ...broken,
    },
    {
      does: 'lets connecting take too long',
      // Accepts, and never says a word of the TLS handshake.
      line: { baseUrl: `https://${silent.host}/v1`, timeouts: { connectMs: 80 } },
      ...broken,
      code: 'upstream_timeout',
      timeoutPhase: 'connect',
      within: 2000,
    },
    {
      does: 'resets the connection before the head',
      script: (res) => void res.socket?.resetAndDestroy(),
      ...broken,
    },
    { does: 'closes the connection before the head', script: (res) => void res.socket?.end(), ...broken },
    {
      does: 'resets the connection behind the head',
      script(res, { stream }) {
        res.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
        res.flushHeaders()
        setTimeout(() => res.socket?.resetAndDestroy(), 20)
      },
      ...broken,
      upstreamStatus: 200,
    },
    {
      does: 'answers something that is not HTTP',
      script: (res) => void res.socket?.end(`${SECRET} 200 OK\r\n\r\n`),
      ...broken,
    },
  ])
})
