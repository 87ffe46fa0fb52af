import { startGatewayProcess } from '../examples/gateway-process.ts'

/**
 * Runs before the first test: a gateway is started and ended, and leaves in Node's compile cache what Node has made of its
 * TypeScript. Tests start some hundred gateways and kill most of them; only a process that ends by itself writes there.
 */
export async function globalSetup(): Promise<void> {
  if (process.env.NODE_COMPILE_CACHE === undefined) return
  const gateway = await startGatewayProcess()
  gateway.kill('SIGTERM')
  await gateway.exited
}
