"""The small residual network that ``net="resnet"`` stands for, with group normalisation, which mixes no rows."""

from collections.abc import Sequence

from torch import Tensor, nn

from skfairdp._networks._shorthands import draw_weights, image_sizes, listed_channels


class ResNet(nn.Sequential):
    """Residual network for images that come as flat rows.

    A convolution (3 x 3), then one residual block for each entry of ``channels``: two convolutions, each followed by
    group normalisation and tanh, beside a path that leaves the image as it is (1 x 1 where the size changes). Every
    block but the first halves height and width. The mean over all positions goes into one linear layer. Batch
    normalisation, which residual networks usually have, mixes the rows of a batch; group normalisation reads one image
    alone. The initial weights are drawn from torch's generator; all logits are 0 at first.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun (2016), "Deep residual learning for image recognition", arXiv:1512.03385. Y. Wu, K.
    He (2018), "Group normalization", arXiv:1803.08494.
    """

    predicts_rows_alone = True

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        image_shape: Sequence[int] | None = None,
        channels: Sequence[int] = (16, 32),
    ) -> None:
        sizes, widths = image_sizes(image_shape, n_features), listed_channels(channels)
        layers: list[nn.Module] = [nn.Unflatten(1, sizes), _convolution(sizes[0], widths[0]), group_norm(widths[0])]
        layers.append(nn.Tanh())
        before = widths[0]
        for position, after in enumerate(widths):
            layers.append(ResidualBlock(before, after, stride=1 if position == 0 else 2))
            before = after
        last = nn.utils.skip_init(nn.Linear, before, n_classes)
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), last)
        draw_weights(self)


class ResidualBlock(nn.Module):
    """Two convolutions beside the image itself; its weights are drawn by the network that holds it."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _convolution(before, after, stride=stride),
            group_norm(after),
            nn.Tanh(),
            _convolution(after, after),
            group_norm(after),
        )
        same = before == after and stride == 1
        self.past = nn.Identity() if same else _convolution(before, after, stride=stride, width=1)
        self.last = nn.Tanh()

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.body(images) + self.past(images))


def _convolution(before: int, after: int, *, stride: int = 1, width: int = 3) -> nn.Module:
    # skip_init: a plain layer would draw weights of its own first
    return nn.utils.skip_init(nn.Conv2d, before, after, width, stride=stride, padding=width // 2)


def group_norm(channels: int) -> nn.Module:
    """Up to four groups of at least two channels: one channel of one pixel would be normalised to nothing."""
    groups = next(n for n in (4, 2, 1) if n == 1 or (channels % n == 0 and channels >= 2 * n))
    return nn.GroupNorm(groups, channels)
