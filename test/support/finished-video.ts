import type { TestContext } from 'node:test'
import { type LineKind, startVideoGateway, type VideoGateway, videoUpstreamFor } from './video-gateway.ts'
import { createTask, OPENAI_VIDEO, readTask } from './video-protocols.ts'
import type { VideoUpstream } from './video-upstream.ts'

/** The secret that signs the addresses of {@link finishedVideo}. */
export const SECRET = 'a secret of some length'

/** A video that its line has finished. */
export interface Finished {
  readonly upstream: VideoUpstream
  readonly gateway: VideoGateway
  readonly id: string
}

/** @param videoUrl where a task-style line says that it is. Defaults to its own server. */
export async function finishedVideo(t: TestContext, kind: LineKind, videoUrl?: string): Promise<Finished> {
  const upstream = await videoUpstreamFor(t)
  upstream.videoUrl = videoUrl
  const gateway = await startVideoGateway(t, {
    lines: [{ kind, url: upstream.url }],
    video: { urlSigningSecret: SECRET },
  })
  const id = await createTask(gateway, OPENAI_VIDEO)
  upstream.last.status = kind === 'ark' ? 'succeeded' : 'completed'
  await readTask(gateway, OPENAI_VIDEO, id)
  return { upstream, gateway, id }
}
