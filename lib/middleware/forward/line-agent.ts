import type { Agent, ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import { http } from '../../core/call/node-http.ts'
import type { Line } from '../../core/catalog/index.ts'
import { tlsOptions, tunnelTo } from '../../routing/lines/line-connect.ts'

const agents = new WeakMap<Line, Agent>()

/** Returns the agent of a line that has a proxy or certificates of its own; undefined for all others. */
export function agentOf(line: Line): Agent | undefined {
  if (line.proxy === undefined && line.tls === undefined) return undefined
  const known = agents.get(line)
  if (known) return known
  const isTls = line.origin.startsWith('https:')
  const agent = isTls
    ? new (process.getBuiltinModule('node:https').Agent)({ keepAlive: false, ...tlsOptions(line) })
    : new http.Agent({ keepAlive: false })
  if (line.proxy !== undefined) connectThroughProxy(agent, line, isTls)
  agents.set(line, agent)
  return agent
}

/** Gives each request a connection through the proxy, once it is open: an upload must not begin before. */
function connectThroughProxy(agent: Agent, line: Line, isTls: boolean): void {
  agent.createConnection = (
    options: ClientRequestArgs,
    done?: (error: Error | null, socket: Duplex) => void,
  ) => {
    const { hostname, port, protocol } = new URL(line.origin)
    tunnelTo(line, { hostname, port, protocol }, (error, socket) => {
      if (error || !socket) {
        done?.(error ?? new Error('there is no tunnel'), socket as unknown as Duplex)
        return
      }
      if (!isTls) {
        done?.(null, socket)
        return
      }
      const { servername } = options as { servername?: string }
      const secure = process
        .getBuiltinModule('node:tls')
        .connect({ ...tlsOptions(line), socket, ...(servername && { servername }) })
      const failed = (fault: Error): void => done?.(fault, secure)
      secure.once('error', failed).once('secureConnect', () => {
        secure.off('error', failed)
        done?.(null, secure)
      })
    })
    return undefined
  }
}
