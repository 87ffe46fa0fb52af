import { cleaningUp } from './clean-up.ts'
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts'
import { type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

/** The gateway and the upstream that the tests of a suite share. */
export interface SuiteGateway {
  readonly upstream: ScriptedUpstream
  readonly gateway: TestGateway
}

/**
 * A gateway over one upstream, awaited in the body of a `describe`; both are closed behind its last test. Without
 * `options`, which is given the upstream's URL, the gateway has one line.
 */
export async function suiteGateway(
  options: (url: string) => TestGatewayOptions = (url) => ({ lines: [{ url }] }),
): Promise<SuiteGateway> {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const gateway = await startGateway(options(upstream.url))
  cleanUp.after(() => gateway.close())
  return { upstream, gateway }
}
