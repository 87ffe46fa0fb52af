import type { Agent, ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import { http } from '../../core/call/node-http.ts'
import type { Line } from '../../core/catalog/index.ts'
import { lookupAny } from '../../core/public-address/index.ts'
import { connectorOf, tlsOptions } from '../../routing/lines/line-connect.ts'
import { loadUndici } from '../../routing/lines/upstream-pool.ts'

const agents = new WeakMap<Line, Agent>()

/** Returns the agent of a line that has a proxy or certificates of its own; undefined for all others. */
export function agentOf(line: Line): Agent | undefined {
  if (line.proxy === undefined && line.tls === undefined) return undefined
  const known = agents.get(line)
  if (known) return known
  const isTls = line.origin.startsWith('https:')
  const Base = isTls ? process.getBuiltinModule('node:https').Agent : http.Agent
  const ForLine = line.proxy === undefined ? Base : throughProxy(Base, line)
  const agent = new ForLine({ keepAlive: false, lookup: lookupAny, ...(isTls && tlsOptions(line)) })
  agents.set(line, agent)
  return agent
}

/** Returns a class of agents that give each request a connection through the proxy, once it is open: an upload must not begin before. */
function throughProxy(Base: typeof Agent, line: Line): typeof Agent {
  const { hostname, host, port, protocol } = new URL(line.origin)
  const loaded = loadUndici().then(({ buildConnector }) => connectorOf(line, buildConnector))
  return class extends Base {
    override createConnection(
      options: ClientRequestArgs,
      done?: (error: Error | null, socket: Duplex) => void,
    ): undefined {
      const { servername } = options as { servername?: string }
      const target = { hostname, host, port, protocol, ...(servername && { servername }) }
      const connected = (error: Error | null, socket: Duplex | null): void => done?.(error, socket as Duplex)
      loaded.then((connect) => connect(target, connected)).catch((error: Error) => connected(error, null))
      return undefined
    }
  }
}
